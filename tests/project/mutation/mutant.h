/* Tests whether a mutant is chosen. The build includes this header before every mutated source. */
#ifndef SYNCBLOB_TESTS_MUTANT_H
#define SYNCBLOB_TESTS_MUTANT_H

/* sb__mutant is the number in SYNCBLOB_MUTANT, or -1. sb__mutants_reached is NULL or the mapped
 * file SYNCBLOB_MUTANTS_REACHED, with one byte for each mutant. */
extern int sb__mutant;
extern unsigned char *sb__mutants_reached;

/* CMake defines fake_cuda_EXPORTS for the fake driver, which does not define sb__mutant. */
static inline int sb__mutant_at(int number) {
#ifdef fake_cuda_EXPORTS
    return 0;
#else
    if (__builtin_expect(sb__mutants_reached != 0, 0))
        __atomic_store_n(&sb__mutants_reached[number], 1, __ATOMIC_RELAXED);
    return sb__mutant == number;
#endif
}

#endif
