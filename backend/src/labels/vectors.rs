//! Label vectors from the documents that carry each label: z_ℓ = v_ℓ/‖v_ℓ‖, v_ℓ = Σ_{i: y_iℓ=1} φ(x_i).
//!
//! φ is any document embedding (dense) or TF-IDF (sparse, "PIFA"). A label no document carries has no sum;
//! it gets the vector of its name when the caller can make one, and zero otherwise: the graph filter or
//! the k-means then places it.

use gnnxml_shared::features::SparseVector;
use rayon::prelude::*;

use super::rows::{DenseRows, check_finite, normalise};
use super::{DocumentLabels, LabelError, SparseRows};

/// Makes a dense vector from a label's name, for a label without documents.
pub type NameVector<'a> = &'a (dyn Fn(u32) -> Option<Vec<f32>> + Sync);

/// Makes a sparse vector from a label's name, for a label without documents.
pub type SparseNameVector<'a> = &'a (dyn Fn(u32) -> Option<SparseVector> + Sync);

/// Dense label vectors from row-major document vectors.
pub fn label_vectors_dense(
    document_vectors: &[f32],
    width: usize,
    documents: &DocumentLabels,
    of_name: Option<NameVector<'_>>,
) -> Result<DenseRows, LabelError> {
    if width == 0 || document_vectors.len() != documents.documents() * width {
        return Err(LabelError::Shape {
            what: "numbers in the document vectors",
            found: document_vectors.len(),
            expected: documents.documents() * width,
        });
    }
    check_finite(document_vectors, width, "document vector")?;
    let by_label = documents.by_label();
    let mut values = vec![0f32; documents.labels() * width];
    values
        .par_chunks_mut(width)
        .enumerate()
        .try_for_each(|(label, sum)| {
            let carriers = by_label.of(label);
            for &document in carriers {
                let vector = &document_vectors[document as usize * width..(document as usize + 1) * width];
                for (sum, value) in sum.iter_mut().zip(vector) {
                    *sum += value;
                }
            }
            if carriers.is_empty()
                && let Some(vector) = of_name.and_then(|of_name| of_name(label as u32))
            {
                if vector.len() != width {
                    return Err(LabelError::Shape {
                        what: "width of a label name's vector",
                        found: vector.len(),
                        expected: width,
                    });
                }
                sum.copy_from_slice(&vector);
            }
            normalise(sum);
            Ok(())
        })?;
    DenseRows::new(values, width, "label vector")
}

/// Sparse label vectors from the documents' TF-IDF rows over `width` terms.
pub fn label_vectors_sparse(
    document_rows: &[SparseVector],
    width: usize,
    documents: &DocumentLabels,
    of_name: Option<SparseNameVector<'_>>,
) -> Result<SparseRows, LabelError> {
    if document_rows.len() != documents.documents() {
        return Err(LabelError::Shape {
            what: "document rows",
            found: document_rows.len(),
            expected: documents.documents(),
        });
    }
    document_rows
        .par_iter()
        .enumerate()
        .try_for_each(|(document, row)| check_sparse(row, width, "document row", document))?;
    let by_label = documents.by_label();
    let rows: Vec<SparseVector> = (0..documents.labels())
        .into_par_iter()
        .map_init(
            || (vec![0f32; width], Vec::<u32>::new()),
            |(sum, touched), label| {
                let mut add = |row: &SparseVector| {
                    for (term, value) in row.iter() {
                        if sum[term as usize] == 0.0 {
                            touched.push(term);
                        }
                        sum[term as usize] += value;
                    }
                };
                let carriers = by_label.of(label);
                for &document in carriers {
                    add(&document_rows[document as usize]);
                }
                if carriers.is_empty()
                    && let Some(row) = of_name.and_then(|of_name| of_name(label as u32))
                {
                    check_sparse(&row, width, "vector of the name of label", label)?;
                    add(&row);
                }
                touched.sort_unstable();
                touched.dedup();
                let mut row = SparseVector {
                    indices: touched.clone(),
                    values: touched.iter().map(|&term| sum[term as usize]).collect(),
                };
                for term in touched.drain(..) {
                    sum[term as usize] = 0.0;
                }
                normalise(&mut row.values);
                Ok(row)
            },
        )
        .collect::<Result<_, LabelError>>()?;
    let nonzeros = rows.iter().map(SparseVector::len).sum();
    let (mut starts, mut columns, mut values) = (
        vec![0usize],
        Vec::with_capacity(nonzeros),
        Vec::with_capacity(nonzeros),
    );
    for row in rows {
        columns.extend(row.indices);
        values.extend(row.values);
        starts.push(columns.len());
    }
    Ok(SparseRows::new(
        (documents.labels(), width),
        starts,
        columns,
        values,
    ))
}

/// Ascending terms below `width`, finite values, one each.
fn check_sparse(row: &SparseVector, width: usize, what: &'static str, at: usize) -> Result<(), LabelError> {
    if row.indices.len() != row.values.len() {
        return Err(LabelError::Shape {
            what: "values in a sparse row",
            found: row.values.len(),
            expected: row.indices.len(),
        });
    }
    if let Some(&term) = row.indices.iter().find(|&&term| term as usize >= width) {
        return Err(LabelError::Shape {
            what: "terms the vocabulary must hold for a sparse row",
            found: width,
            expected: term as usize + 1,
        });
    }
    match row.values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(place) => Err(LabelError::NotFinite {
            what,
            row: at,
            column: row.indices[place] as usize,
            value: row.values[place],
        }),
    }
}
