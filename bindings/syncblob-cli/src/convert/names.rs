//! Parses the names of tensors in files without metadata.

/// The layer of a tensor, its blob number and its role.
pub struct Parsed<'a> {
    pub layer: &'a str,
    pub blob: usize,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Number,
    /// A weight or a bias.
    Affine,
    /// A mean or a variance that was divided by the scale factor.
    Statistics,
}

pub fn parse(name: &str) -> Option<Parsed<'_>> {
    let (layer, role) = name.rsplit_once('.')?;
    let (blob, role) = match role {
        "weight" => (0, Role::Affine),
        "bias" => (1, Role::Affine),
        "running_mean" => (0, Role::Statistics),
        "running_var" => (1, Role::Statistics),
        number => (number.parse().ok()?, Role::Number),
    };
    Some(Parsed { layer, blob, role })
}
