//! The one place where a file becomes memory.
#![allow(unsafe_code)]

use std::fs::File;

use memmap2::{Mmap, MmapOptions};

/// A read-only view of the beginning of a file that only grows.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    view: Option<Mmap>,
}

impl Mapping {
    pub(super) fn bytes(&self) -> &[u8] {
        self.view.as_deref().unwrap_or_default()
    }

    /// Makes the first `length` bytes of the file visible.
    pub(super) fn cover(&mut self, file: &File, length: usize) -> std::io::Result<()> {
        if length <= self.bytes().len() {
            return Ok(());
        }
        // SAFETY: the view is read-only and covers only bytes below the last committed key. Writers append beyond them
        // under the key file's lock and cut off only what lies beyond, so no process of ours changes them under us.
        self.view = Some(unsafe { MmapOptions::new().len(length).map(file)? });
        Ok(())
    }
}
