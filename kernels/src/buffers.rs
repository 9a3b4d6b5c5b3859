//! Buffers that come back: by use and by power of two, so that a steady stream of documents allocates nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Bytes that may lie idle.
const IDLE_LIMIT: u64 = 64 << 20;

/// What a pooled buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// A document's numbers and every dispatch's settings.
    Upload,
    /// Between two dispatches.
    Between,
    /// Read by the CPU.
    Download,
}

impl Purpose {
    fn usages(self) -> wgpu::BufferUsages {
        use wgpu::BufferUsages as Usages;
        match self {
            Self::Upload => Usages::STORAGE | Usages::UNIFORM | Usages::COPY_DST,
            Self::Between => Usages::STORAGE | Usages::COPY_SRC,
            Self::Download => Usages::COPY_DST | Usages::MAP_READ,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    buffers: BTreeMap<(Purpose, u64), Vec<wgpu::Buffer>>,
    bytes: u64,
}

impl Pool {
    /// A buffer of at least `bytes`; what it holds is of no meaning.
    pub(crate) fn take(&self, device: &wgpu::Device, purpose: Purpose, bytes: u64) -> wgpu::Buffer {
        let size = size_class(bytes);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(buffer) = idle.buffers.get_mut(&(purpose, size)).and_then(Vec::pop) {
            idle.bytes -= size;
            return buffer;
        }
        drop(idle);
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: purpose.usages(),
            mapped_at_creation: false,
        })
    }

    /// Takes a buffer back, unless enough lie idle.
    pub(crate) fn give_back(&self, purpose: Purpose, buffer: wgpu::Buffer) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.bytes + buffer.size() <= IDLE_LIMIT {
            idle.bytes += buffer.size();
            let key = (purpose, buffer.size());
            idle.buffers.entry(key).or_default().push(buffer);
        }
    }

    /// Number and bytes of idle buffers.
    pub(crate) fn idle(&self) -> (usize, u64) {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        (idle.buffers.values().map(Vec::len).sum(), idle.bytes)
    }
}

fn size_class(bytes: u64) -> u64 {
    bytes.max(256).next_power_of_two()
}
