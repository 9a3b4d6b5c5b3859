//! Published models, the one that tags and the one before it.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Result, Store, StoreError, from_json, to_json, unsigned};
use crate::runs::now;

/// A model about to be recorded; its bundle is in place already.
#[derive(Clone, Debug, PartialEq)]
pub struct NewModel {
    pub id: String,
    pub name: String,
    pub run: Option<u64>,
    pub encoder: String,
    /// BCP-47 tag of the texts' language.
    pub language: String,
    pub labels: u64,
    pub clusters: u64,
    pub bytes: u64,
    pub metrics: BTreeMap<String, f64>,
}

/// A recorded model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRow {
    pub created: u64,
    pub model: NewModel,
}

const COLUMNS: &str = "id, name, created, run, encoder, labels, clusters, bytes, metrics, language";

fn model(row: &Row<'_>) -> rusqlite::Result<(ModelRow, String)> {
    let metrics: String = row.get(8)?;
    let row = ModelRow {
        created: unsigned(row.get(2)?),
        model: NewModel {
            id: row.get(0)?,
            name: row.get(1)?,
            run: row.get::<_, Option<i64>>(3)?.map(unsigned),
            encoder: row.get(4)?,
            labels: unsigned(row.get(5)?),
            clusters: unsigned(row.get(6)?),
            bytes: unsigned(row.get(7)?),
            metrics: BTreeMap::new(),
            language: row.get(9)?,
        },
    };
    Ok((row, metrics))
}

fn with_metrics((mut row, metrics): (ModelRow, String)) -> Result<ModelRow> {
    row.model.metrics = from_json("metrics", &metrics)?;
    Ok(row)
}

impl Store {
    /// Records a model. The same content has the same id: publishing it again only renames it.
    pub fn add_model(&self, new: &NewModel) -> Result<()> {
        self.write(|db| {
            db.execute(
                &format!(
                    "INSERT INTO models ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
                     ON CONFLICT (id) DO UPDATE SET name = excluded.name, run = excluded.run, language = excluded.language"
                ),
                params![
                    new.id,
                    new.name,
                    now() as i64,
                    new.run.map(|id| id as i64),
                    new.encoder,
                    new.labels as i64,
                    new.clusters as i64,
                    new.bytes as i64,
                    to_json(&new.metrics),
                    new.language,
                ],
            )?;
            Ok(())
        })
    }

    /// Newest first.
    pub fn models(&self) -> Result<Vec<ModelRow>> {
        self.read(|db| {
            let mut statement =
                db.prepare_cached(&format!("SELECT {COLUMNS} FROM models ORDER BY created DESC, id"))?;
            let rows = statement.query_map([], model)?;
            rows.map(|row| with_metrics(row?)).collect()
        })
    }

    pub fn model(&self, id: &str) -> Result<ModelRow> {
        self.read(|db| {
            let row = db
                .prepare_cached(&format!("SELECT {COLUMNS} FROM models WHERE id = ?1"))?
                .query_row([id], model)
                .optional()?
                .ok_or_else(|| StoreError::Missing {
                    what: "model",
                    id: id.to_owned(),
                })?;
            with_metrics(row)
        })
    }

    /// The model that tags and the one that did before it.
    pub fn active_models(&self) -> Result<(Option<String>, Option<String>)> {
        self.read(|db| {
            Ok(db.query_row("SELECT current, previous FROM active", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?)
        })
    }

    /// Makes `id` the model that tags. Activating the active one changes nothing.
    pub fn activate_model(&self, id: &str) -> Result<()> {
        self.write(|db| {
            let known: bool = db.query_row(
                "SELECT EXISTS (SELECT 1 FROM models WHERE id = ?1)",
                [id],
                |row| row.get(0),
            )?;
            if !known {
                return Err(StoreError::Missing {
                    what: "model",
                    id: id.to_owned(),
                });
            }
            db.execute(
                "UPDATE active SET previous = current, current = ?1 WHERE current IS NOT ?1",
                [id],
            )?;
            Ok(())
        })
    }

    /// Forgets a model; refused with [`StoreError::InUse`] while it is active.
    pub fn delete_model(&self, id: &str) -> Result<()> {
        self.write(|db| match db.execute("DELETE FROM models WHERE id = ?1", [id])? {
            0 => Err(StoreError::Missing {
                what: "model",
                id: id.to_owned(),
            }),
            _ => Ok(()),
        })
    }
}
