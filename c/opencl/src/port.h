/* Locks and the process id, which differ between systems. */
#ifndef SB_OPENCL_PORT_H
#define SB_OPENCL_PORT_H

#include <stdint.h>

#ifdef _WIN32
#include <windows.h>

typedef SRWLOCK sb__opencl_lock;
#define SB__OPENCL_LOCK_INIT SRWLOCK_INIT

static inline void sb__opencl_lock_take(sb__opencl_lock *lock) {
    AcquireSRWLockExclusive(lock);
}

static inline void sb__opencl_lock_give(sb__opencl_lock *lock) {
    ReleaseSRWLockExclusive(lock);
}

/* Returns the process id, or a constant on systems without fork. */
static inline int64_t sb__opencl_process(void) {
    return 1;
}

#else
#include <pthread.h>
#include <unistd.h>

typedef pthread_mutex_t sb__opencl_lock;
#define SB__OPENCL_LOCK_INIT PTHREAD_MUTEX_INITIALIZER

static inline void sb__opencl_lock_take(sb__opencl_lock *lock) {
    (void)pthread_mutex_lock(lock);
}

static inline void sb__opencl_lock_give(sb__opencl_lock *lock) {
    (void)pthread_mutex_unlock(lock);
}

static inline int64_t sb__opencl_process(void) {
    return getpid();
}

#endif

#endif
