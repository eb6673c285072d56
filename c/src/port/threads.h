/* Threads of each system: locks, one-time calls, thread ids, and forks. On a system
   without fork, sb__on_fork does nothing. WASI has one thread. */
#ifndef SB_PORT_THREADS_H
#define SB_PORT_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef _WIN32

typedef struct {
    void *words[1]; /* an SRWLOCK */
} sb__mutex;

typedef struct {
    void *words[5]; /* a CRITICAL_SECTION */
} sb__recursive_mutex;

typedef struct {
    void *words[1]; /* an INIT_ONCE */
} sb__once;

#define SB__MUTEX_INIT                                                                             \
    {                                                                                              \
        { 0 }                                                                                      \
    }
#define SB__ONCE_INIT                                                                              \
    {                                                                                              \
        { 0 }                                                                                      \
    }

void sb__mutex_init(sb__mutex *mutex);
void sb__mutex_destroy(sb__mutex *mutex);
void sb__mutex_lock(sb__mutex *mutex);
bool sb__mutex_try_lock(sb__mutex *mutex);
void sb__mutex_unlock(sb__mutex *mutex);

/* Returns false if out of memory. */
bool sb__recursive_mutex_init(sb__recursive_mutex *mutex);
void sb__recursive_mutex_destroy(sb__recursive_mutex *mutex);
void sb__recursive_mutex_lock(sb__recursive_mutex *mutex);
void sb__recursive_mutex_unlock(sb__recursive_mutex *mutex);

void sb__run_once(sb__once *once, void (*run)(void));

static inline void sb__on_fork(void (*in_child)(void)) {
    (void)in_child;
}

#elif defined(__wasi__)

typedef struct {
    bool is_locked;
} sb__mutex;

typedef struct {
    char unused;
} sb__recursive_mutex;

typedef struct {
    bool has_run;
} sb__once;

#define SB__MUTEX_INIT                                                                             \
    { false }
#define SB__ONCE_INIT                                                                              \
    { false }

static inline void sb__mutex_init(sb__mutex *mutex) {
    mutex->is_locked = false;
}

static inline void sb__mutex_destroy(sb__mutex *mutex) {
    (void)mutex;
}

static inline void sb__mutex_lock(sb__mutex *mutex) {
    mutex->is_locked = true;
}

static inline bool sb__mutex_try_lock(sb__mutex *mutex) {
    const bool was_locked = mutex->is_locked;
    mutex->is_locked = true;
    return !was_locked;
}

static inline void sb__mutex_unlock(sb__mutex *mutex) {
    mutex->is_locked = false;
}

static inline bool sb__recursive_mutex_init(sb__recursive_mutex *mutex) {
    (void)mutex;
    return true;
}

static inline void sb__recursive_mutex_destroy(sb__recursive_mutex *mutex) {
    (void)mutex;
}

static inline void sb__recursive_mutex_lock(sb__recursive_mutex *mutex) {
    (void)mutex;
}

static inline void sb__recursive_mutex_unlock(sb__recursive_mutex *mutex) {
    (void)mutex;
}

static inline void sb__run_once(sb__once *once, void (*run)(void)) {
    if (!once->has_run)
        run();
    once->has_run = true;
}

static inline void sb__on_fork(void (*in_child)(void)) {
    (void)in_child;
}

#else

#include <pthread.h>

typedef pthread_mutex_t sb__mutex;
typedef pthread_mutex_t sb__recursive_mutex;
typedef pthread_once_t sb__once;

#define SB__MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define SB__ONCE_INIT  PTHREAD_ONCE_INIT

static inline void sb__mutex_init(sb__mutex *mutex) {
    (void)pthread_mutex_init(mutex, NULL);
}

static inline void sb__mutex_destroy(sb__mutex *mutex) {
    (void)pthread_mutex_destroy(mutex);
}

static inline void sb__mutex_lock(sb__mutex *mutex) {
    (void)pthread_mutex_lock(mutex);
}

static inline bool sb__mutex_try_lock(sb__mutex *mutex) {
    return pthread_mutex_trylock(mutex) == 0;
}

static inline void sb__mutex_unlock(sb__mutex *mutex) {
    (void)pthread_mutex_unlock(mutex);
}

/* Returns false if out of memory. */
bool sb__recursive_mutex_init(sb__recursive_mutex *mutex);

static inline void sb__recursive_mutex_destroy(sb__recursive_mutex *mutex) {
    (void)pthread_mutex_destroy(mutex);
}

static inline void sb__recursive_mutex_lock(sb__recursive_mutex *mutex) {
    (void)pthread_mutex_lock(mutex);
}

static inline void sb__recursive_mutex_unlock(sb__recursive_mutex *mutex) {
    (void)pthread_mutex_unlock(mutex);
}

static inline void sb__run_once(sb__once *once, void (*run)(void)) {
    (void)pthread_once(once, run);
}

/* Registers `in_child` to run in the child of every later fork. */
static inline void sb__on_fork(void (*in_child)(void)) {
    (void)pthread_atfork(NULL, NULL, in_child);
}

#endif

/* Returns the nanoseconds of a monotonic clock. */
uint64_t sb__now(void);

int64_t sb__process(void);
/* Returns the number of this thread, which no other thread of the process ever has. */
int64_t sb__thread_number(void);
void sb__sleep_milliseconds(uint32_t milliseconds);

#endif
