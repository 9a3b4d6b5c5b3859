//! One document's work: written down first, then uploaded, submitted and read back in one go.

use serde::{Deserialize, Serialize};

use crate::buffers::Purpose;
use crate::device::{LARGEST_BINDING, Scopes};
use crate::pipelines::Kernel;
use crate::{Gpu, GpuError, signal};

/// Bindings begin at multiples of this.
const ALIGNMENT: usize = 256;
/// Bytes of a dispatch's settings.
const SETTINGS: usize = 32;
/// Workgroups a grid has at most in one direction.
pub(crate) const GRID_LIMIT: u32 = 65_535;
/// How long a GPU may take for one document.
#[cfg(not(target_arch = "wasm32"))]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// What a document cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub dispatches: usize,
    /// Bytes to the GPU; the model's own weights are there already.
    pub bytes_up: u64,
    /// Bytes back from it.
    pub bytes_down: u64,
}

/// Numbers somewhere on the GPU.
#[derive(Clone, Debug)]
pub(crate) enum View {
    /// In the document's upload.
    Upload { offset: u64, bytes: u64 },
    /// Made by one dispatch for others.
    Between { index: usize, bytes: u64 },
    /// There for as long as the model is.
    Stored(wgpu::Buffer),
}

struct Step {
    kernel: Kernel,
    settings: usize,
    views: Vec<View>,
    groups: [u32; 3],
}

/// One field of a dispatch's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field {
    Count(usize),
    Number(f32),
}

impl From<usize> for Field {
    fn from(value: usize) -> Self {
        Self::Count(value)
    }
}

impl From<f32> for Field {
    fn from(value: f32) -> Self {
        Self::Number(value)
    }
}

/// The work of one document, in order.
#[derive(Default)]
pub(crate) struct Recording {
    upload: Vec<u8>,
    between: Vec<u64>,
    steps: Vec<Step>,
    downloads: Vec<View>,
}

impl Recording {
    /// Brings a document's numbers along.
    pub(crate) fn upload<T: bytemuck::NoUninit>(&mut self, numbers: &[T]) -> View {
        let offset = self.upload.len();
        let bytes: &[u8] = bytemuck::cast_slice(numbers);
        self.upload.extend_from_slice(bytes);
        // Nothing binds to nothing: an empty list takes one vector's room.
        let taken = bytes.len().max(16);
        self.upload
            .resize((offset + taken).next_multiple_of(ALIGNMENT), 0);
        View::Upload {
            offset: offset as u64,
            bytes: taken as u64,
        }
    }

    /// Room for `words` numbers between two dispatches.
    pub(crate) fn between(&mut self, words: usize) -> View {
        let bytes = (words as u64 * 4).max(16);
        self.between.push(bytes);
        View::Between {
            index: self.between.len() - 1,
            bytes,
        }
    }

    /// One dispatch of `groups` workgroups.
    pub(crate) fn dispatch(&mut self, kernel: Kernel, settings: &[Field], views: &[&View], groups: [u32; 3]) {
        let mut words = [0_u32; SETTINGS / 4];
        for (word, field) in words.iter_mut().zip(settings) {
            *word = match *field {
                Field::Count(count) => count as u32,
                Field::Number(number) => number.to_bits(),
            };
        }
        let View::Upload { offset, .. } = self.upload(&words) else {
            unreachable!("an upload lies in the upload")
        };
        self.steps.push(Step {
            kernel,
            settings: offset as usize,
            views: views.iter().map(|&view| view.clone()).collect(),
            groups,
        });
    }

    /// Asks for what a dispatch made.
    pub(crate) fn download(&mut self, view: &View) {
        self.downloads.push(view.clone());
    }

    fn check(&self) -> Result<(), GpuError> {
        let largest = self.between.iter().copied().max().unwrap_or(0);
        for (what, bytes) in [
            ("the document", self.upload.len() as u64),
            ("an intermediate result", largest),
        ] {
            if bytes > LARGEST_BINDING {
                return Err(GpuError::TooLarge {
                    what,
                    bytes,
                    limit: LARGEST_BINDING,
                });
            }
        }
        let widest = self.steps.iter().flat_map(|step| step.groups).max().unwrap_or(0);
        if widest > GRID_LIMIT {
            return Err(GpuError::TooMany {
                what: "a dispatch's width in workgroups",
                found: widest as usize,
                limit: GRID_LIMIT as usize,
            });
        }
        Ok(())
    }
}

/// A grid that holds `groups` workgroups in a row or, beyond a row's limit, in several.
pub(crate) fn grid(groups: usize) -> [u32; 3] {
    let groups = groups.max(1) as u32;
    [groups.min(GRID_LIMIT), groups.div_ceil(GRID_LIMIT), 1]
}

/// The buffers a run holds, to be given back.
struct Held {
    upload: wgpu::Buffer,
    between: Vec<wgpu::Buffer>,
    download: wgpu::Buffer,
}

impl Gpu {
    /// Runs a recording: one upload, one submission, one read-back. The answers come in the order they were asked for.
    pub(crate) async fn run(&self, recording: Recording) -> Result<(Vec<Vec<u8>>, Report), GpuError> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        recording.check()?;
        let sizes: Vec<u64> = (recording.downloads.iter())
            .map(|view| match view {
                View::Upload { bytes, .. } | View::Between { bytes, .. } => *bytes,
                View::Stored(buffer) => buffer.size(),
            })
            .collect();
        let report = Report {
            dispatches: recording.steps.len(),
            bytes_up: recording.upload.len() as u64,
            bytes_down: sizes.iter().sum(),
        };

        let scopes = Scopes::open(&self.device);
        let held = self.submit(&recording, &sizes);
        let slice = held.download.slice(..report.bytes_down.max(16));
        let (sender, mapped) = signal::channel();
        slice.map_async(wgpu::MapMode::Read, move |result| sender.send(result.is_ok()));
        let refused = scopes.close();

        #[cfg(not(target_arch = "wasm32"))]
        let mapped = {
            let begun = std::time::Instant::now();
            let mut done = mapped.take();
            while done.is_none() && begun.elapsed() < PATIENCE {
                // What polling meets is told again by the mapping and the scopes. Another thread's polling may be
                // about to call our callback: then there is nothing left to wait for here but its turn.
                let _ = self.device.poll(wgpu::PollType::Wait {
                    submission_index: None,
                    timeout: Some(PATIENCE),
                });
                std::thread::yield_now();
                done = mapped.take();
            }
            std::future::ready(done.unwrap_or(false))
        };
        let mapped = mapped.await;
        refused.await?;
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        if !mapped {
            return Err(GpuError::ReadBack);
        }
        let answers = {
            let view = slice.get_mapped_range().map_err(|_| GpuError::ReadBack)?;
            let bytes: &[u8] = &view;
            let mut at = 0;
            let mut answers = Vec::with_capacity(sizes.len());
            for size in sizes {
                answers.push(bytes[at..at + size as usize].to_vec());
                at += size as usize;
            }
            answers
        };
        held.download.unmap();
        self.pool.give_back(Purpose::Upload, held.upload);
        self.pool.give_back(Purpose::Download, held.download);
        for buffer in held.between {
            self.pool.give_back(Purpose::Between, buffer);
        }
        Ok((answers, report))
    }

    fn submit(&self, recording: &Recording, sizes: &[u64]) -> Held {
        let take = |purpose, bytes| self.pool.take(&self.device, purpose, bytes);
        let held = Held {
            upload: take(Purpose::Upload, recording.upload.len() as u64),
            between: (recording.between.iter())
                .map(|&bytes| take(Purpose::Between, bytes))
                .collect(),
            download: take(Purpose::Download, sizes.iter().sum::<u64>().max(16)),
        };
        self.queue.write_buffer(&held.upload, 0, &recording.upload);
        let place = |view: &View| match view {
            View::Upload { offset, bytes } => (held.upload.clone(), *offset, *bytes),
            View::Between { index, bytes } => (held.between[*index].clone(), 0, *bytes),
            View::Stored(buffer) => (buffer.clone(), 0, buffer.size()),
        };
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for step in &recording.steps {
                let pipeline = self.pipelines.get(step.kernel);
                assert_eq!(
                    step.views.len(),
                    pipeline.bindings as usize,
                    "bindings of {:?}",
                    step.kernel
                );
                let places: Vec<_> = step.views.iter().map(place).collect();
                let bound = |binding: usize, buffer, offset, bytes| wgpu::BindGroupEntry {
                    binding: binding as u32,
                    resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer,
                        offset,
                        size: wgpu::BufferSize::new(bytes),
                    }),
                };
                let mut entries = vec![bound(0, &held.upload, step.settings as u64, SETTINGS as u64)];
                entries.extend(
                    (places.iter().enumerate())
                        .map(|(index, (buffer, offset, bytes))| bound(index + 1, buffer, *offset, *bytes)),
                );
                let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: None,
                    layout: &pipeline.layout,
                    entries: &entries,
                });
                pass.set_pipeline(&pipeline.pipeline);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(step.groups[0], step.groups[1], step.groups[2]);
            }
        }
        let mut at = 0;
        for (view, &size) in recording.downloads.iter().zip(sizes) {
            let (buffer, offset, _) = place(view);
            encoder.copy_buffer_to_buffer(&buffer, offset, &held.download, at, size);
            at += size;
        }
        self.queue.submit([encoder.finish()]);
        held
    }

    /// Number and bytes of buffers that wait for the next document.
    pub fn idle_buffers(&self) -> (usize, u64) {
        self.pool.idle()
    }
}
