//! The shaders as texts.

use crate::pipelines::ALL;

#[test]
fn every_shader_is_valid_and_binds_what_the_host_says() {
    for (kernel, shader) in ALL {
        let module = naga::front::wgsl::parse_str(shader.source)
            .unwrap_or_else(|error| panic!("{}: {}", shader.name, error.emit_to_string(shader.source)));
        let mut validator = naga::valid::Validator::new(
            naga::valid::ValidationFlags::all(),
            naga::valid::Capabilities::empty(),
        );
        if let Err(error) = validator.validate(&module) {
            panic!("{kernel:?}: {}", error.emit_to_string(shader.source));
        }
        let mut found: Vec<(u32, bool)> = Vec::new();
        for (_, variable) in module.global_variables.iter() {
            if let (Some(binding), naga::AddressSpace::Storage { access }) =
                (&variable.binding, variable.space)
            {
                found.push((binding.binding, access.contains(naga::StorageAccess::STORE)));
            }
        }
        found.sort_unstable();
        let expected: Vec<(u32, bool)> = (1..=shader.reads + shader.writes)
            .map(|binding| (binding, binding > shader.reads))
            .collect();
        assert_eq!(found, expected, "bindings of {}", shader.name);
        assert!(
            found.len() <= 8,
            "{} binds more than every GPU offers",
            shader.name
        );
    }
}
