/// Always returns true, because the host provides standard output.
pub fn is_open() -> bool {
    true
}
