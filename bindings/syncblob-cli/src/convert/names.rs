//! Parses tensors' names, such as `conv1.weight`, in files without metadata.

/// The parts of a tensor's name: the layer, the blob's number in the layer, and the role.
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
    /// The mean or the variance of a BatchNorm, divided by the BatchNorm's factor.
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
