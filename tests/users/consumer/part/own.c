/* A library of the project that contains syncblob. */
int own_answer(void);

int own_answer(void) {
    return 42;
}
