//! The dots of the map on the GPU. Names, rings and lines stay on the 2-D canvas above.
//!
//! Every label's place is sent once; a frame sends one small view and draws all dots in one call. Where there is no
//! WebGPU, or where its device is lost, the 2-D canvas paints the dots.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::{Pod, Zeroable};
use gnnxml_page_logic::map::{Scene, View};
use web_sys::HtmlCanvasElement;
use wgpu::util::DeviceExt as _;

/// A label as the shader reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Instance {
    at: [f32; 2],
    weight: f32,
    cluster: u32,
}

/// The shader's `View`, padded to its alignment.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ShaderView {
    center: [f32; 2],
    size: [f32; 2],
    scale: f32,
    growth: f32,
    ratio: f32,
    lightness: f32,
    cluster: i32,
    padding: [u32; 3],
}

/// How the dots of a frame look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) dark: bool,
    /// The cluster that stands out, if any.
    pub(super) cluster: Option<u32>,
    /// Device pixels a CSS pixel takes.
    pub(super) ratio: f32,
}

/// A canvas of dots.
#[derive(Debug)]
pub(super) struct GpuDots {
    canvas: HtmlCanvasElement,
    surface: wgpu::Surface<'static>,
    device: wgpu::Device,
    queue: wgpu::Queue,
    format: wgpu::TextureFormat,
    pipeline: wgpu::RenderPipeline,
    view: wgpu::Buffer,
    bindings: wgpu::BindGroup,
    places: wgpu::Buffer,
    count: u32,
    /// Size the surface is configured for, in device pixels.
    configured: [u32; 2],
    lost: Arc<AtomicBool>,
}

impl GpuDots {
    /// Sends the places of all labels; the error says why there is no GPU. `on_lost` is called when the GPU goes away.
    pub(super) async fn new(
        canvas: HtmlCanvasElement,
        instances: Places,
        on_lost: impl Fn() + Send + 'static,
    ) -> Result<Self, String> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::BROWSER_WEBGPU,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let surface = instance
            .create_surface(wgpu::SurfaceTarget::Canvas(canvas.clone()))
            .map_err(|error| format!("no surface: {error}"))?;
        let adapter = instance
            .request_adapter(&wgpu::RequestAdapterOptions {
                compatible_surface: Some(&surface),
                ..Default::default()
            })
            .await
            .map_err(|error| format!("no adapter: {error}"))?;
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor::default())
            .await
            .map_err(|error| format!("no device: {error}"))?;
        let lost = Arc::new(AtomicBool::new(false));
        device.set_device_lost_callback({
            let lost = lost.clone();
            move |_, _| {
                lost.store(true, Ordering::Relaxed);
                on_lost();
            }
        });
        let format = *surface
            .get_capabilities(&adapter)
            .formats
            .first()
            .ok_or("the canvas has no format")?;
        let places = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: Some("places"),
            contents: bytemuck::cast_slice(&instances.0),
            usage: wgpu::BufferUsages::VERTEX,
        });
        let view = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("view"),
            size: size_of::<ShaderView>() as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let pipeline = pipeline(&device, format);
        let bindings = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("view"),
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[wgpu::BindGroupEntry {
                binding: 0,
                resource: view.as_entire_binding(),
            }],
        });
        Ok(Self {
            canvas,
            surface,
            device,
            queue,
            format,
            pipeline,
            view,
            bindings,
            places,
            count: instances.0.len() as u32,
            configured: [0, 0],
            lost,
        })
    }

    /// Draws a frame. False when the GPU is gone: the dots must be painted otherwise.
    pub(super) fn draw(&mut self, view: &View, look: Look) -> bool {
        if self.lost.load(Ordering::Relaxed) {
            return false;
        }
        self.fit(view, look.ratio);
        let frame = match self.surface.get_current_texture() {
            wgpu::CurrentSurfaceTexture::Success(frame) | wgpu::CurrentSurfaceTexture::Suboptimal(frame) => {
                frame
            }
            // The canvas is hidden or not ready: the next frame will do.
            wgpu::CurrentSurfaceTexture::Timeout | wgpu::CurrentSurfaceTexture::Occluded => return true,
            _ => {
                self.configured = [0, 0];
                return !self.lost.load(Ordering::Relaxed);
            }
        };
        let seen = ShaderView {
            center: view.center,
            size: view.size,
            scale: view.scale,
            growth: Scene::growth(view.zoom()),
            ratio: look.ratio,
            lightness: if look.dark { 0.66 } else { 0.44 },
            cluster: look.cluster.map_or(-1, |cluster| cluster as i32),
            padding: [0; 3],
        };
        self.queue.write_buffer(&self.view, 0, bytemuck::bytes_of(&seen));
        let target = frame.texture.create_view(&wgpu::TextureViewDescriptor::default());
        let mut commands = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = commands.begin_render_pass(&wgpu::RenderPassDescriptor {
                label: Some("dots"),
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &target,
                    depth_slice: None,
                    resolve_target: None,
                    ops: wgpu::Operations {
                        load: wgpu::LoadOp::Clear(wgpu::Color::TRANSPARENT),
                        store: wgpu::StoreOp::Store,
                    },
                })],
                ..Default::default()
            });
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.bindings, &[]);
            pass.set_vertex_buffer(0, self.places.slice(..));
            pass.draw(0..4, 0..self.count);
        }
        self.queue.submit([commands.finish()]);
        self.queue.present(frame);
        true
    }

    /// Gives the canvas the view's size in device pixels.
    fn fit(&mut self, view: &View, ratio: f32) {
        let side = |length: f32| ((length * ratio) as u32).max(1);
        let wanted = [side(view.size[0]), side(view.size[1])];
        if wanted == self.configured {
            return;
        }
        self.canvas.set_width(wanted[0]);
        self.canvas.set_height(wanted[1]);
        self.surface.configure(
            &self.device,
            &wgpu::SurfaceConfiguration {
                usage: wgpu::TextureUsages::RENDER_ATTACHMENT,
                format: self.format,
                color_space: wgpu::SurfaceColorSpace::Auto,
                width: wanted[0],
                height: wanted[1],
                present_mode: wgpu::PresentMode::Fifo,
                desired_maximum_frame_latency: 2,
                alpha_mode: wgpu::CompositeAlphaMode::PreMultiplied,
                view_formats: Vec::new(),
            },
        );
        self.configured = wanted;
    }
}

/// All labels, most frequent first, so that small dots lie on top of large ones.
#[derive(Clone, Debug)]
pub(super) struct Places(Vec<Instance>);

impl Places {
    pub(super) fn of(scene: &Scene) -> Self {
        let instance = |place: &gnnxml_page_logic::map::Place| Instance {
            at: place.at,
            weight: Scene::weight(place.count),
            cluster: place.cluster,
        };
        Self(scene.labels_by_count().map(instance).collect())
    }
}

fn pipeline(device: &wgpu::Device, format: wgpu::TextureFormat) -> wgpu::RenderPipeline {
    let shader = device.create_shader_module(wgpu::include_wgsl!("dots.wgsl"));
    let attributes = wgpu::vertex_attr_array![0 => Float32x2, 1 => Float32, 2 => Uint32];
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some("dots"),
        layout: None,
        vertex: wgpu::VertexState {
            module: &shader,
            entry_point: Some("place"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            buffers: &[Some(wgpu::VertexBufferLayout {
                array_stride: size_of::<Instance>() as u64,
                step_mode: wgpu::VertexStepMode::Instance,
                attributes: &attributes,
            })],
        },
        primitive: wgpu::PrimitiveState {
            topology: wgpu::PrimitiveTopology::TriangleStrip,
            ..Default::default()
        },
        depth_stencil: None,
        multisample: wgpu::MultisampleState::default(),
        fragment: Some(wgpu::FragmentState {
            module: &shader,
            entry_point: Some("disc"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            targets: &[Some(wgpu::ColorTargetState {
                format,
                blend: Some(wgpu::BlendState::PREMULTIPLIED_ALPHA_BLENDING),
                write_mask: wgpu::ColorWrites::ALL,
            })],
        }),
        multiview_mask: None,
        cache: None,
    })
}
