//! A GPU, opened once: adapter, queue, pipelines, pooled buffers, and whether it is still there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::GpuError;
use crate::buffers::Pool;
use crate::pipelines::Pipelines;

/// No binding is larger: the smallest limit that GPUs are bound to offer.
pub const LARGEST_BINDING: u64 = 128 << 20;

/// An open GPU with every pipeline built.
#[derive(Debug)]
pub struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) pipelines: Pipelines,
    pub(crate) pool: Pool,
    name: String,
    stored: AtomicU64,
    fault: Fault,
}

/// The first thing that went wrong beyond repair.
#[derive(Clone, Debug, Default)]
struct Fault(Arc<Mutex<Option<GpuError>>>);

impl Fault {
    fn set(&self, error: GpuError) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
    }

    fn get(&self) -> Option<GpuError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Gpu {
    /// Opens the best adapter there is and builds the pipelines.
    pub async fn open() -> Result<Self, GpuError> {
        if !reachable() {
            return Err(GpuError::NoAdapter {
                reason: "this environment has no WebGPU".into(),
            });
        }
        let instance = wgpu::Instance::default();
        let packed = wgpu::WgslLanguageFeatures::Packed4x8IntegerDotProduct;
        if !instance.wgsl_language_features().contains(packed) {
            return Err(GpuError::Lacks {
                what: "packed integer dot products",
            });
        }
        let adapter = instance
            .request_adapter(&wgpu::RequestAdapterOptions {
                power_preference: wgpu::PowerPreference::HighPerformance,
                ..Default::default()
            })
            .await
            .map_err(|error| GpuError::NoAdapter {
                reason: error.to_string(),
            })?;
        let info = adapter.get_info();
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("gnnxml"),
                ..Default::default()
            })
            .await
            .map_err(|error| GpuError::NoAdapter {
                reason: error.to_string(),
            })?;
        let fault = Fault::default();
        device.set_device_lost_callback({
            let fault = fault.clone();
            move |_, reason| fault.set(GpuError::Lost { reason })
        });
        device.on_uncaptured_error({
            let fault = fault.clone();
            Arc::new(move |error: wgpu::Error| fault.set(refusal(error)))
        });
        let scopes = Scopes::open(&device);
        let pipelines = Pipelines::build(&device);
        scopes.close().await?;
        Ok(Self {
            device,
            queue,
            pipelines,
            pool: Pool::default(),
            name: if info.name.is_empty() {
                "unnamed adapter".into()
            } else {
                info.name
            },
            stored: AtomicU64::new(0),
            fault,
        })
    }

    /// What the adapter calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of weights that were brought here so far.
    pub fn stored_bytes(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// What ended this GPU's service, if anything did.
    pub fn fault(&self) -> Option<GpuError> {
        self.fault.get()
    }

    /// Gives the GPU up at once, as pulling it out would.
    pub fn destroy(&self) {
        self.device.destroy();
        self.fault.set(GpuError::Lost {
            reason: "given up".into(),
        });
    }

    /// Puts numbers that many documents share on the GPU.
    pub(crate) fn store(&self, what: &'static str, bytes: &[u8]) -> Result<wgpu::Buffer, GpuError> {
        let size = (bytes.len() as u64).next_multiple_of(4).max(16);
        if size > LARGEST_BINDING {
            return Err(GpuError::TooLarge {
                what,
                bytes: size,
                limit: LARGEST_BINDING,
            });
        }
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(what),
            size,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.stored.fetch_add(size, Ordering::Relaxed);
        let whole = bytes.len() / 4 * 4;
        self.queue.write_buffer(&buffer, 0, &bytes[..whole]);
        if whole < bytes.len() {
            let mut last = [0; 4];
            last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
            self.queue.write_buffer(&buffer, whole as u64, &last);
        }
        Ok(buffer)
    }
}

/// Catches what a stretch of calls does wrong. Nothing may be awaited between the two ends.
pub(crate) struct Scopes {
    memory: wgpu::ErrorScopeGuard,
    validation: wgpu::ErrorScopeGuard,
}

impl Scopes {
    pub(crate) fn open(device: &wgpu::Device) -> Self {
        Self {
            memory: device.push_error_scope(wgpu::ErrorFilter::OutOfMemory),
            validation: device.push_error_scope(wgpu::ErrorFilter::Validation),
        }
    }

    /// The scopes end now; what they caught is known later.
    pub(crate) fn close(self) -> impl Future<Output = Result<(), GpuError>> {
        let validation = self.validation.pop();
        let memory = self.memory.pop();
        async move {
            match (memory.await, validation.await) {
                (Some(error), _) | (None, Some(error)) => Err(refusal(error)),
                (None, None) => Ok(()),
            }
        }
    }
}

fn refusal(error: wgpu::Error) -> GpuError {
    match error {
        wgpu::Error::OutOfMemory { .. } => GpuError::OutOfMemory,
        other => GpuError::Refused {
            reason: other.to_string(),
        },
    }
}

/// Whether asking for a GPU makes sense at all; outside browsers it always does.
#[cfg(not(target_arch = "wasm32"))]
fn reachable() -> bool {
    true
}

/// Whether this global scope is a window or a worker with `navigator.gpu`.
#[cfg(target_arch = "wasm32")]
fn reachable() -> bool {
    use wasm_bindgen::JsValue;
    let global: JsValue = js_sys::global().into();
    let has = |object: &JsValue, name: &str| {
        js_sys::Reflect::get(object, &name.into())
            .ok()
            .filter(|value| !value.is_undefined() && !value.is_null())
    };
    let scope = has(&global, "Window").is_some() || has(&global, "WorkerGlobalScope").is_some();
    scope && has(&global, "navigator").is_some_and(|navigator| has(&navigator, "gpu").is_some())
}
