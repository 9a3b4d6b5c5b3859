//! The models in memory: one that tags, swapped in one step, and the last two kept warm.
//!
//! A request takes the model once and keeps it to its end: it never sees half of one and half of another.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use gnnxml_kernels::Preference;

use super::engine::{EngineError, TaggingEngine};

/// How many models stay in memory.
const WARM: usize = 2;

/// A model that can answer.
#[derive(Debug)]
pub(super) struct LoadedModel {
    pub(super) id: String,
    pub(super) engine: TaggingEngine,
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct ModelRegistry {
    /// What runs the models' graph networks.
    preference: Preference,
    active: RwLock<Option<Arc<LoadedModel>>>,
    /// Most recently used last.
    warm: Mutex<Vec<Arc<LoadedModel>>>,
    /// Held while a model is loaded, so that many requests for one model load it once.
    loading: Mutex<()>,
}

impl ModelRegistry {
    /// A registry without models.
    pub(super) fn new(preference: Preference) -> Self {
        Self {
            preference,
            active: RwLock::default(),
            warm: Mutex::default(),
            loading: Mutex::default(),
        }
    }

    /// The model that tags.
    pub(super) fn active(&self) -> Option<Arc<LoadedModel>> {
        self.active.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on `model` tags. Requests under way keep the model they began with.
    pub(super) fn activate(&self, model: Arc<LoadedModel>) {
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = Some(model);
    }

    /// The model from memory, or loaded from `bundle`. Blocking.
    pub(super) fn load(&self, id: &str, bundle: &Path) -> Result<Arc<LoadedModel>, EngineError> {
        if let Some(model) = self.warm(id) {
            return Ok(model);
        }
        let _one_at_a_time = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = self.warm(id) {
            return Ok(model);
        }
        let model = Arc::new(LoadedModel {
            id: id.to_owned(),
            engine: TaggingEngine::load_on(bundle, self.preference)?,
        });
        let processor = model.engine.network().processor();
        tracing::info!(model = id, ?processor, "a model is in memory");
        let active = self.active();
        let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        if warm.len() >= WARM {
            // The active model stays, whatever else is asked for.
            let coldest = warm
                .iter()
                .position(|model| active.as_ref().is_none_or(|active| active.id != model.id));
            warm.remove(coldest.unwrap_or(0));
        }
        warm.push(Arc::clone(&model));
        Ok(model)
    }

    pub(super) fn is_warm(&self, id: &str) -> bool {
        self.warm
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .any(|model| model.id == id)
    }

    /// Lets go of a model; requests under way still finish with it.
    pub(super) fn forget(&self, id: &str) {
        self.warm
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|model| model.id != id);
    }

    fn warm(&self, id: &str) -> Option<Arc<LoadedModel>> {
        let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        let place = warm.iter().position(|model| model.id == id)?;
        let model = warm.remove(place);
        warm.push(Arc::clone(&model));
        Some(model)
    }
}
