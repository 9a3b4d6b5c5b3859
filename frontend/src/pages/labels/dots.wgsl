// The dots of the label map: one quad a label, a disc in each. The places lie on the GPU; a frame only brings a new view.

struct View {
    // Map coordinates of the screen's middle.
    center: vec2f,
    // Screen size in CSS pixels.
    size: vec2f,
    // CSS pixels a map unit takes.
    scale: f32,
    // How much dots have grown with the zoom.
    growth: f32,
    // Device pixels a CSS pixel takes.
    ratio: f32,
    // Lightness of the dots: darker on light paper.
    lightness: f32,
    // The cluster that stands out; the others fade. −1 when none does.
    cluster: i32,
}

@group(0) @binding(0) var<uniform> view: View;

struct Corner {
    @builtin(position) position: vec4f,
    @location(0) from_middle: vec2f,
    @location(1) @interpolate(flat) radius: f32,
    @location(2) @interpolate(flat) colour: vec4f,
}

// Neighbouring numbers get far-apart hues: each is the golden angle from the last.
fn colour_of(cluster: u32) -> vec3f {
    let hue = (f32(cluster) * 137.508 + 18.0) / 360.0;
    let saturation = 0.42 * min(view.lightness, 1.0 - view.lightness);
    let k = fract(hue + vec3f(0.0, 8.0, 4.0) / 12.0) * 12.0;
    return vec3f(view.lightness) - saturation * clamp(min(k - 3.0, 9.0 - k), vec3f(-1.0), vec3f(1.0));
}

@vertex
fn place(
    @builtin(vertex_index) index: u32,
    @location(0) at: vec2f,
    @location(1) weight: f32,
    @location(2) cluster: u32,
) -> Corner {
    let radius = weight * view.growth;
    let corner = vec2f(f32(index & 1u), f32(index >> 1u)) * 2.0 - 1.0;
    // A pixel more on every side, for the soft edge.
    let from_middle = corner * (radius + 1.0);
    let screen = (at - view.center) * view.scale + view.size * 0.5 + from_middle;
    let clip = screen / view.size * 2.0 - 1.0;
    let faded = view.cluster >= 0 && u32(view.cluster) != cluster;
    var out: Corner;
    out.position = vec4f(clip.x, -clip.y, 0.0, 1.0);
    out.from_middle = from_middle;
    out.radius = radius;
    out.colour = vec4f(colour_of(cluster), select(0.78, 0.16, faded));
    return out;
}

@fragment
fn disc(corner: Corner) -> @location(0) vec4f {
    let inside = (corner.radius - length(corner.from_middle)) * view.ratio + 0.5;
    let alpha = corner.colour.a * clamp(inside, 0.0, 1.0);
    return vec4f(corner.colour.rgb * alpha, alpha);
}
