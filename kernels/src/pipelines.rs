//! Every kernel: its shader, its bindings, its pipeline.

use crate::narrow::Precision::{self, Eight, Half, Single};

/// A kernel by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Linear { precision: Precision },
    Quantise,
    LinearDot,
    Gather { precision: Precision },
    Aggregate,
    LayerNorm,
    Attention,
    ReadOut,
    Classify { precision: Precision },
    TopK,
}

/// A kernel's text and its storage bindings, numbered from 1: those it reads, then those it writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shader {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    pub(crate) reads: u32,
    pub(crate) writes: u32,
}

macro_rules! shader {
    ($name:literal, $reads:literal, $writes:literal $(, $library:literal)*) => {
        Shader {
            name: $name,
            source: concat!(
                $(include_str!(concat!("shaders/", $library, ".wgsl")), "\n",)*
                include_str!(concat!("shaders/", $name, ".wgsl"))
            ),
            reads: $reads,
            writes: $writes,
        }
    };
}

const LINEAR: Shader = shader!("linear", 4, 1, "numbers", "activation");
const QUANTISE: Shader = shader!("quantise", 2, 2, "lanes");
const LINEAR_DOT: Shader = shader!("linear_dot", 5, 1, "activation");
const GATHER: Shader = shader!("gather", 6, 1, "numbers");
const AGGREGATE: Shader = shader!("aggregate", 4, 1);
const LAYER_NORM: Shader = shader!("layer_norm", 4, 1, "lanes", "activation");
const ATTENTION: Shader = shader!("attention", 2, 1, "lanes");
const READ_OUT: Shader = shader!("read_out", 1, 1);
const CLASSIFY: Shader = shader!("classify", 5, 2, "numbers", "lanes");
const TOP_K: Shader = shader!("top_k", 1, 1);

/// All of them, in the order of their pipelines.
pub(crate) const ALL: [(Kernel, Shader); 16] = [
    (Kernel::Linear { precision: Eight }, LINEAR),
    (Kernel::Linear { precision: Half }, LINEAR),
    (Kernel::Linear { precision: Single }, LINEAR),
    (Kernel::Quantise, QUANTISE),
    (Kernel::LinearDot, LINEAR_DOT),
    (Kernel::Gather { precision: Eight }, GATHER),
    (Kernel::Gather { precision: Half }, GATHER),
    (Kernel::Gather { precision: Single }, GATHER),
    (Kernel::Aggregate, AGGREGATE),
    (Kernel::LayerNorm, LAYER_NORM),
    (Kernel::Attention, ATTENTION),
    (Kernel::ReadOut, READ_OUT),
    (Kernel::Classify { precision: Eight }, CLASSIFY),
    (Kernel::Classify { precision: Half }, CLASSIFY),
    (Kernel::Classify { precision: Single }, CLASSIFY),
    (Kernel::TopK, TOP_K),
];

impl Kernel {
    /// How its matrix holds its numbers, where it has one.
    fn precision(self) -> Option<Precision> {
        match self {
            Self::Linear { precision } | Self::Gather { precision } | Self::Classify { precision } => {
                Some(precision)
            }
            _ => None,
        }
    }
}

/// A pipeline and what it is bound through.
#[derive(Debug)]
pub(crate) struct Pipeline {
    kernel: Kernel,
    pub(crate) bindings: u32,
    pub(crate) layout: wgpu::BindGroupLayout,
    pub(crate) pipeline: wgpu::ComputePipeline,
}

/// Every pipeline, built once.
#[derive(Debug)]
pub(crate) struct Pipelines(Vec<Pipeline>);

impl Pipelines {
    pub(crate) fn build(device: &wgpu::Device) -> Self {
        Self(ALL.map(|(kernel, shader)| build(device, kernel, shader)).into())
    }

    pub(crate) fn get(&self, kernel: Kernel) -> &Pipeline {
        let found = self.0.iter().find(|pipeline| pipeline.kernel == kernel);
        found.expect("every kernel is in the list above")
    }
}

fn build(device: &wgpu::Device, kernel: Kernel, shader: Shader) -> Pipeline {
    let entry = |binding: u32, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty,
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
    let bindings = shader.reads + shader.writes;
    let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform)];
    entries.extend((1..=bindings).map(|binding| entry(binding, storage(binding <= shader.reads))));
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some(shader.name),
        entries: &entries,
    });
    let constants: Vec<(&str, f64)> = kernel
        .precision()
        .map(|precision| ("BITS", precision.bits() as f64))
        .into_iter()
        .collect();
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(shader.name),
        source: wgpu::ShaderSource::Wgsl(shader.source.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(shader.name),
        layout: Some(&device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(shader.name),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        })),
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants: &constants,
            ..Default::default()
        },
        cache: None,
    });
    Pipeline {
        kernel,
        bindings,
        layout,
        pipeline,
    }
}
