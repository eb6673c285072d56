/* This file is built as a driver, a cuBLAS and an NCCL that lack all functions. */
int fake_without(void);

int fake_without(void) {
    return 0;
}
