/* A library of the project that syncblob is a part of. */
int own_answer(void);

int own_answer(void) {
    return 42;
}
