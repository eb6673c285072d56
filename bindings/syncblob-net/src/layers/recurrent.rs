//! LSTM and RNN process sequences step by step, and pass a state from each step to the next. The
//! first bottom's first axis contains the steps, its second axis the sequences. Before a step, the
//! state is multiplied by the second bottom's value: 0 at the beginning of a sequence, otherwise 1.
//! ONNX's operators have no such factor, so each step has separate nodes. If no bottom contains the
//! first state, the first state is 0, as in Caffe's first run. In Caffe, each later run continues
//! with the state of the previous run.

use super::{count, fixed, size, Rule, Setup, Shapes, PLAIN};
use crate::net::Shape;
use crate::onnx::{Emit, Value};
use crate::{Error, Result};

pub(super) static LSTM: Rule = Rule {
    layer_type: "LSTM",
    parameters: Some("recurrent_param"),
    bottoms: (2, 5),
    tops: (1, 3),
    shapes: |setup| Recurrence::new(setup, &LONG)?.shapes(setup),
    emit: lstm,
    ..PLAIN
};

pub(super) static RNN: Rule = Rule {
    layer_type: "RNN",
    parameters: Some("recurrent_param"),
    bottoms: (2, 4),
    tops: (1, 2),
    shapes: |setup| Recurrence::new(setup, &SIMPLE)?.shapes(setup),
    emit: rnn,
    ..PLAIN
};

/// The maximum number of steps, because the graph has separate nodes for each step.
const MOST_STEPS: i64 = 4096;

/// The differences between the types LSTM and RNN.
struct Kind {
    /// The number of blobs in the state that is passed from step to step.
    states: usize,
    /// The number of vectors that a step computes from its input and the state.
    gates: i64,
    /// Whether the layer also has weights that compute the outputs from the state.
    weighted_output: bool,
}

static LONG: Kind = Kind { states: 2, gates: 4, weighted_output: false };
static SIMPLE: Kind = Kind { states: 1, gates: 1, weighted_output: true };

struct Recurrence {
    kind: &'static Kind,
    steps: i64,
    sequences: i64,
    outputs: i64,
    /// The number of input values of one sequence at one step.
    inputs: i64,
    /// The number of values of the third bottom, an optional input that is the same for all steps.
    constant: Option<i64>,
}

impl Recurrence {
    fn new(setup: &Setup<'_>, kind: &'static Kind) -> Result<Self> {
        let p = setup.parameters;
        let (exposed, outputs) = (p.bool("expose_hidden"), size(p.int("num_output").into())?);
        let states = if exposed { kind.states } else { 0 };
        let (bottoms, tops) = (setup.bottoms, setup.layer.tops.len());
        let constants = bottoms.len().checked_sub(2 + states);
        if !matches!(constants, Some(0 | 1)) || tops != 1 + states || outputs == 0 {
            let text = format_args!("{} bottoms, {tops} tops, num_output {outputs}", bottoms.len());
            return Err(Error::invalid(text));
        }
        let &[steps @ 1..=i64::MAX, sequences, ref values @ ..] = &*bottoms[0] else {
            return Err(Error::invalid("the layer's bottom has no axis of steps or of sequences"));
        };
        let inputs = vector(values)?;
        let constant = match constants {
            Some(1) => Some(constant(&bottoms[2], sequences)?),
            _ => None,
        };
        let new = Self { kind, steps, sequences, outputs, inputs, constant };
        new.check(&bottoms[1], &bottoms[new.first_state()..])?;
        Ok(new)
    }

    fn check(&self, cont: &[i64], states: &[Shape]) -> Result<()> {
        if *cont != [self.steps, self.sequences] {
            let text = format_args!("{cont:?} must be [{}, {}]", self.steps, self.sequences);
            return Err(Error::invalid(text));
        }
        match states.iter().find(|shape| **shape != self.state()) {
            Some(shape) => Err(Error::invalid(format_args!("a state of {shape:?}"))),
            None => Ok(()),
        }
    }

    fn state(&self) -> Shape {
        vec![1, self.sequences, self.outputs]
    }

    fn shapes(&self, setup: &Setup<'_>) -> Result<Shapes> {
        let mut tops = vec![vec![self.steps, self.sequences, self.outputs]];
        tops.resize(setup.layer.tops.len(), self.state());
        let rows = size(i128::from(self.outputs) * i128::from(self.kind.gates))?;
        let mut blobs = vec![vec![rows, self.inputs], vec![rows]];
        blobs.extend(self.constant.map(|values| vec![rows, values]));
        blobs.push(vec![rows, self.outputs]);
        if self.kind.weighted_output {
            blobs.extend([vec![self.outputs, self.outputs], vec![self.outputs]]);
        }
        Ok(Shapes { tops, blobs })
    }

    /// Returns the index of the first bottom that contains a state. The blob with this index
    /// contains the state's weights.
    fn first_state(&self) -> usize {
        2 + usize::from(self.constant.is_some())
    }
}

/// Returns the product of the sizes of `axes`. Caffe requires at least one axis.
fn vector(axes: &[i64]) -> Result<i64> {
    match axes {
        [] => Err(Error::invalid("the layer's bottom has no axis of values")),
        axes => count(axes),
    }
}

fn constant(bottom: &[i64], sequences: i64) -> Result<i64> {
    match bottom {
        [first, values @ ..] if *first == sequences => vector(values),
        _ => Err(Error::invalid(format_args!("{bottom:?} for {sequences} sequences"))),
    }
}

/// The graph's values that every step's nodes read.
struct Steps {
    /// `inputs`: the weighted inputs of each step. `conts`: each step's factor for the previous
    /// state.
    inputs: Vec<Value>,
    conts: Vec<Value>,
    /// The matrix that the state is multiplied by.
    weights: Value,
    /// The states before the first step. If the list is empty, the state is 0.
    states: Vec<Value>,
}

impl Steps {
    fn new(e: &mut Emit<'_>, r: &Recurrence) -> Result<Self> {
        e.ignore(["weight_filler", "bias_filler", "debug_info"]);
        fixed(e, 0..1)?;
        fixed(e, 2..usize::MAX)?;
        if r.steps > MOST_STEPS {
            let text = format_args!("it has {} steps, more than {MOST_STEPS}", r.steps);
            return Err(Error::unsupported(text));
        }
        let sum = sum_of_inputs(e, r)?;
        let last = e.ints(&[2]);
        let cont = e.apply("Unsqueeze", [e.bottom(1), last]);
        let first = r.first_state();
        Ok(Self {
            inputs: split(e, sum, 0, r.steps, 1),
            conts: split(e, cont, 0, r.steps, 1),
            weights: transposed(e, first)?,
            states: (first..e.bottom_shapes.len()).map(|index| e.bottom(index)).collect(),
        })
    }

    /// Returns the sum of a step's weighted inputs and the previous step's weighted state.
    fn sum(&self, e: &mut Emit<'_>, step: usize, state: Option<Value>) -> Value {
        let Some(state) = state else { return self.inputs[step] };
        let state = e.apply("Mul", [state, self.conts[step]]);
        let product = e.apply("MatMul", [state, self.weights]);
        e.apply("Add", [product, self.inputs[step]])
    }
}

/// Returns the weighted inputs of all steps.
fn sum_of_inputs(e: &mut Emit<'_>, r: &Recurrence) -> Result<Value> {
    let x = as_rows(e, 0, &[r.steps, -1, r.inputs]);
    let sum = weighted(e, x, 0)?;
    let Some(values) = r.constant else { return Ok(sum) };
    let (x, weights) = (as_rows(e, 2, &[-1, values]), transposed(e, 2)?);
    let product = e.apply("MatMul", [x, weights]);
    Ok(e.apply("Add", [sum, product]))
}

/// Returns a bottom, reshaped if necessary, so that its axes of values become one axis.
fn as_rows(e: &mut Emit<'_>, bottom: usize, dims: &[i64]) -> Value {
    if e.bottom_shapes[bottom].len() == dims.len() {
        return e.bottom(bottom);
    }
    e.reshape(e.bottom(bottom), dims)
}

/// Multiplies `x` by the matrix in a blob, and adds the bias in the next blob.
fn weighted(e: &mut Emit<'_>, x: Value, blob: usize) -> Result<Value> {
    let (weights, bias) = (transposed(e, blob)?, e.blob(blob + 1)?);
    let product = e.apply("MatMul", [x, weights]);
    Ok(e.apply("Add", [product, bias]))
}

fn transposed(e: &mut Emit<'_>, blob: usize) -> Result<Value> {
    let weights = e.blob(blob)?;
    Ok(e.node("Transpose").ints("perm", [1, 0]).input(weights).value(e))
}

/// Splits a value into parts of equal length along an axis.
fn split(e: &mut Emit<'_>, value: Value, axis: i64, parts: i64, length: i64) -> Vec<Value> {
    let number = usize::try_from(parts).unwrap_or_default();
    if number == 1 {
        return vec![value];
    }
    let lengths = e.ints(&vec![length; number]);
    e.node("Split").int("axis", axis).input(value).input(lengths).values(e, number)
}

/// Makes the tops: the outputs, and the states after the last step.
fn finish(e: &mut Emit<'_>, outputs: Value, states: &[Value]) {
    e.node("Identity").input(outputs).top(e, 0);
    for (top, state) in (1..e.top_shapes.len()).zip(states) {
        e.node("Identity").input(*state).top(e, top);
    }
}

fn lstm(e: &mut Emit<'_>) -> Result<()> {
    let r = Recurrence::new(&e.setup(), &LONG)?;
    let steps = Steps::new(e, &r)?;
    let mut state = steps.states.first().copied().zip(steps.states.get(1).copied());
    let mut outputs = Vec::new();
    for step in 0..steps.inputs.len() {
        let next = long_step(e, &r, &steps, step, state);
        outputs.push(next.0);
        state = Some(next);
    }
    let all = e.node("Concat").int("axis", 0).inputs(outputs).value(e);
    let states: Vec<Value> = state.into_iter().flat_map(|state| [state.0, state.1]).collect();
    finish(e, all, &states);
    Ok(())
}

/// Returns a step's output and cell state. The order of the gates is input, forget, output, new
/// cell input.
fn long_step(
    e: &mut Emit<'_>,
    r: &Recurrence,
    steps: &Steps,
    step: usize,
    state: Option<(Value, Value)>,
) -> (Value, Value) {
    let sum = steps.sum(e, step, state.map(|state| state.0));
    let gates = split(e, sum, 2, 4, r.outputs);
    let open = |e: &mut Emit<'_>, gate: usize| e.apply("Sigmoid", [gates[gate]]);
    let (input, output) = (open(e, 0), open(e, 2));
    let fresh = e.apply("Tanh", [gates[3]]);
    let mut cell = e.apply("Mul", [input, fresh]);
    if let Some((_, before)) = state {
        let forget = open(e, 1);
        let kept = e.apply("Mul", [forget, steps.conts[step]]);
        let kept = e.apply("Mul", [kept, before]);
        cell = e.apply("Add", [kept, cell]);
    }
    let shown = e.apply("Tanh", [cell]);
    (e.apply("Mul", [output, shown]), cell)
}

fn rnn(e: &mut Emit<'_>) -> Result<()> {
    let r = Recurrence::new(&e.setup(), &SIMPLE)?;
    let steps = Steps::new(e, &r)?;
    let mut state = steps.states.first().copied();
    let mut hidden = Vec::new();
    for step in 0..steps.inputs.len() {
        let sum = steps.sum(e, step, state);
        let next = e.apply("Tanh", [sum]);
        hidden.push(next);
        state = Some(next);
    }
    let all = e.node("Concat").int("axis", 0).inputs(hidden).value(e);
    let sum = weighted(e, all, r.first_state() + 1)?;
    let outputs = e.apply("Tanh", [sum]);
    finish(e, outputs, state.as_slice());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::layers::testing::check;

    #[test]
    fn sequences_have_steps() {
        let h: &[i64] = &[1, 2, 3];
        let hidden = "num_output: 3 expose_hidden: true";
        check(
            "LSTM",
            &[
                (
                    "num_output: 3",
                    &[&[5, 2, 7], &[5, 2]],
                    Some((&[&[5, 2, 3]], &[&[12, 7], &[12], &[12, 3]])),
                ),
                (
                    "num_output: 3",
                    &[&[5, 2, 7, 2], &[5, 2], &[2, 4]],
                    Some((&[&[5, 2, 3]], &[&[12, 14], &[12], &[12, 4], &[12, 3]])),
                ),
                (
                    hidden,
                    &[&[5, 2, 7], &[5, 2], h, h],
                    Some((&[&[5, 2, 3], h, h], &[&[12, 7], &[12], &[12, 3]])),
                ),
            ],
        );
        let blobs: &[&[i64]] = &[&[3, 7], &[3], &[3, 4], &[3, 3], &[3, 3], &[3]];
        let bottoms: &[&[i64]] = &[&[5, 2, 7], &[5, 2], &[2, 4], h];
        check("RNN", &[(hidden, bottoms, Some((&[&[5, 2, 3], h], blobs)))]);
    }

    #[test]
    fn wrong_sequences_are_refused() {
        let rows: [&[&[i64]]; 8] = [
            &[&[5, 2, 7], &[5, 3]],
            &[&[5, 2, 7], &[5, 2, 1]],
            &[&[5, 2], &[5, 2]],
            &[&[5], &[5]],
            &[&[0, 2, 7], &[0, 2]],
            &[&[5, 2, 7], &[5, 2], &[3, 4]],
            &[&[5, 2, 7], &[5, 2], &[2]],
            &[&[5, 2, 7], &[5, 2], &[2, 4], &[2, 4]],
        ];
        check("LSTM", &rows.map(|bottoms| ("num_output: 3", bottoms, None)));
        let bottoms: &[&[i64]] = &[&[5, 2, 7], &[5, 2]];
        let texts =
            ["num_output: 0", "num_output: 4294967295", "num_output: 3 expose_hidden: true"];
        check("LSTM", &texts.map(|text| (text, bottoms, None)));
    }
}
