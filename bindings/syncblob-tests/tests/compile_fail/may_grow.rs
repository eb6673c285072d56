use syncblob::{BlobAt, Filler, Reallocated, SolverInfo, Variance};

// New versions may add members to these structs and values to these enums.

fn made_of_its_members() -> SolverInfo {
    SolverInfo { iteration: 1, current_step: 0, learned_net: "net".into() } //~ E0639
}

fn made_of_another(info: SolverInfo) -> SolverInfo {
    SolverInfo { iteration: 1, ..info } //~ E0639
}

fn a_place(index: usize) -> BlobAt {
    BlobAt { layer: None, index } //~ E0639
}

fn taken_apart(reallocated: Reallocated) -> bool {
    let Reallocated { data, diff } = reallocated; //~ E0638
    data || diff
}

fn every_variance(variance: Variance) {
    let (Variance::FanIn | Variance::FanOut | Variance::Average) = variance; //~ E0005
}

#[rustfmt::skip] // the mark must stay on its line
fn every_filler(filler: Filler) -> bool {
    match filler { //~ E0004
        Filler::Constant { .. } | Filler::Uniform { .. } | Filler::Gaussian { .. } => true,
        Filler::PositiveUnitball | Filler::Bilinear => true,
        Filler::Xavier { .. } | Filler::Msra { .. } => false,
    }
}

fn main() {}
