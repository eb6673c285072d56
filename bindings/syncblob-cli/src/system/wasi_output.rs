/// Always true: the host provides standard output.
pub fn is_open() -> bool {
    true
}
