//! WGSL compute shaders and their wgpu host code: the operations of `gnnxml_shared::model`, on a GPU.
//!
//! No operation has moved here yet: the page computes with WASM SIMD, the program with the CPU. What comes will never
//! decide what to compute, only compute what `gnnxml_shared::model` defines, and a test will hold the two together.
