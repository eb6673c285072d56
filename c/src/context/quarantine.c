/* Quarantine: retired storage that the device may still be using. The users of the storage are the
   streams that may use it. The library frees the storage only when the users' work is known to have
   ended. Every synchronise, trim and release checks the work again. Each entry is in the list of
   its first user whose work is not known to have ended. A check therefore waits for each stream
   only once, however many entries there are. When the work of an entry's first user has ended, the
   entry moves to the list of its next user. After the last user, the library frees the storage. A
   context with entries may have no owner that could check the entries, for example after the
   program has released the context. A global list therefore retains all contexts with entries. The
   library checks the list whenever a context is trimmed or ends. */
#include "context/context.h"

static sb__mutex waiting_lock = SB__MUTEX_INIT;
static sb_context *waiting; /* the list of contexts with entries, linked by next_waiting */
static sb_context **waiting_end = &waiting;
static sb__counter waiting_count;
static sb__counter lost_bytes;

void sb__quarantine_forked(void) {
    waiting_lock = (sb__mutex)SB__MUTEX_INIT;
    waiting = NULL; /* the listed contexts belong to the parent */
    waiting_end = &waiting;
    sb__counter_subtract(&waiting_count, sb__counter_read(&waiting_count));
    sb__counter_subtract(&lost_bytes, sb__counter_read(&lost_bytes));
}

/* --- contexts with entries ----------------------------------------------------------- */

/* The caller holds waiting_lock. */
static void unlink_waiting(sb_context *context) {
    *context->waiting_link = context->next_waiting;
    if (context->next_waiting)
        context->next_waiting->waiting_link = context->waiting_link;
    else
        waiting_end = context->waiting_link;
    context->waiting_link = NULL;
    sb__counter_subtract(&waiting_count, 1);
}

static void enlist(sb_context *context) {
    sb__mutex_lock(&waiting_lock);
    if (!context->waiting_link) {
        context->next_waiting = NULL;
        context->waiting_link = waiting_end;
        *waiting_end = sb_context_retain(context);
        waiting_end = &context->next_waiting;
        (void)sb__counter_add(&waiting_count, 1);
    }
    sb__mutex_unlock(&waiting_lock);
}

/* Removes the context from the list if it has no entries. The caller is another owner, so the
   context is not freed. */
static void delist(sb_context *context) {
    sb__mutex_lock(&waiting_lock);
    bool leaves = context->waiting_link && sb__quarantine_is_empty(context);
    if (leaves)
        unlink_waiting(context);
    sb__mutex_unlock(&waiting_lock);
    if (leaves)
        (void)sb__context_drop_owner(context);
}

void sb__quarantine_lose(size_t bytes) {
    (void)sb__counter_add(&lost_bytes, bytes);
}

uint64_t sb__quarantine_leaked(void) {
    uint64_t bytes = sb__counter_read(&lost_bytes);
    if (!sb__counter_read(&waiting_count))
        return bytes;
    sb__mutex_lock(&waiting_lock);
    for (const sb_context *context = waiting; context; context = context->next_waiting)
        if (atomic_load_explicit(&context->refs, memory_order_relaxed) == 1)
            bytes += sb__counter_read(&context->quarantine.bytes);
    sb__mutex_unlock(&waiting_lock);
    return bytes;
}

/* --- entries ----------------------------------------------------------------------- */

/* Appends the list `more` to `*list`. A list is circular: the pointer refers to the last entry. */
static void join(struct sb__quarantined **list, struct sb__quarantined *more) {
    if (more && *list) {
        struct sb__quarantined *first = more->next;
        more->next = (*list)->next;
        (*list)->next = first;
    }
    if (more)
        *list = more;
}

static struct sb__quarantined *take_first(struct sb__quarantined **list) {
    struct sb__quarantined *first = (*list)->next;
    if (first == *list)
        *list = NULL;
    else
        (*list)->next = first->next;
    first->next = first;
    return first;
}

static int first_user(uint64_t users) {
    int bit = 0;
    while (!(users >> bit & 1))
        bit++;
    return bit;
}

void sb__quarantine_put(sb_context *context, struct sb__quarantined *entry) {
    struct sb__quarantine *quarantine = &context->quarantine;
    (void)sb__counter_add(&quarantine->bytes, entry->bytes);
    enlist(context);
    entry->next = entry;
    sb__mutex_lock(&quarantine->lock);
    join(&quarantine->waiting[first_user(entry->users)].entries, entry);
    sb__mutex_unlock(&quarantine->lock);
}

/* The entries of one user (a bit of `users`), which a thread has removed from the lists for a
   check. */
struct asked {
    struct sb__quarantined *entries;
    struct sb__mark mark;
    int bit;
};

static bool is_empty(const struct sb__waiting *waiting) {
    return !waiting->entries && !waiting->marked;
}

/* Searches from asked->bit on for a bit with entries, and moves the entries to `asked`. A thread
   that does not wait moves only the entries that precede the bit's mark, if there is a mark. */
static bool take_next(struct sb__quarantine *quarantine, struct asked *asked, bool waits) {
    const int bits = sizeof quarantine->waiting / sizeof *quarantine->waiting;
    sb__mutex_lock(&quarantine->lock);
    while (asked->bit < bits && is_empty(&quarantine->waiting[asked->bit]))
        asked->bit++;
    const bool found = asked->bit < bits;
    if (found) {
        struct sb__waiting *waiting = &quarantine->waiting[asked->bit];
        asked->entries = waiting->marked;
        asked->mark = waiting->mark;
        if (waits || !waiting->marked) {
            join(&asked->entries, waiting->entries);
            waiting->entries = NULL;
        }
        waiting->marked = NULL;
        waiting->mark = (struct sb__mark){NULL, 0};
    }
    sb__mutex_unlock(&quarantine->lock);
    return found;
}

/* Called when the work of the user asked->bit has ended. Moves each entry to the list of its next
   user, or to `over` if the entry has no other user. */
static void advance(struct sb__quarantine *quarantine, struct asked *asked,
                    struct sb__quarantined **over) {
    sb__mutex_lock(&quarantine->lock);
    while (asked->entries) {
        struct sb__quarantined *entry = take_first(&asked->entries);
        entry->users &= ~((uint64_t)1 << asked->bit);
        join(entry->users ? &quarantine->waiting[first_user(entry->users)].entries : over, entry);
    }
    sb__mutex_unlock(&quarantine->lock);
}

/* Puts entries whose work has not ended back into the lists. If another thread has set a mark
   meanwhile, drops the mark of `asked` and adds the entries to the unmarked list. */
static void put_back(sb_context *context, struct asked *asked) {
    struct sb__quarantine *quarantine = &context->quarantine;
    struct sb__waiting *waiting = &quarantine->waiting[asked->bit];
    void *event = asked->mark.event;
    sb__mutex_lock(&quarantine->lock);
    if (event && !waiting->marked) {
        waiting->marked = asked->entries;
        waiting->mark = asked->mark;
        event = NULL;
    } else {
        join(&waiting->entries, asked->entries);
    }
    sb__mutex_unlock(&quarantine->lock);
    sb__event_destroy(context, event);
}

static bool is_over(sb_context *context, struct asked *asked, bool waits) {
    const uint64_t user = (uint64_t)1 << asked->bit;
    if (!waits)
        return sb__streams_known_over(context, user, &asked->mark);
    sb__event_destroy(context, asked->mark.event);
    asked->mark.event = NULL;
    return sb__streams_over(context, user);
}

/* Runs deleters, which may call the library: all lists must already be consistent. */
static void release_all(struct sb__quarantine *quarantine, struct sb__quarantined *over) {
    while (over) {
        struct sb__quarantined *entry = take_first(&over);
        sb__counter_subtract(&quarantine->bytes, entry->bytes);
        entry->release(entry);
    }
}

/* Checks the entries of each user, and releases the entries whose work has ended. Waits for streams
   without the lock, because a wait takes long. During a wait, a second thread can check the
   remaining entries. */
static void ask(sb_context *context, bool waits) {
    struct sb__quarantine *quarantine = &context->quarantine;
    struct sb__quarantined *over = NULL;
    if (sb__quarantine_is_empty(context) || !sb__context_is_ours(context))
        return;
    for (struct asked asked = {.bit = 0}; take_next(quarantine, &asked, waits); asked.bit++) {
        if (is_over(context, &asked, waits))
            advance(quarantine, &asked, &over);
        else
            put_back(context, &asked);
    }
    release_all(quarantine, over);
    if (sb__quarantine_is_empty(context))
        delist(context);
}

void sb__quarantine_ask(sb_context *context) {
    ask(context, true);
}

bool sb__quarantine_is_empty(const sb_context *context) {
    return !sb__counter_read(&context->quarantine.bytes);
}

/* Checks all listed contexts. Removes each context from the list before its check, because the
   check runs deleters. */
static void ask_all(const sb_context *own, bool waits) {
    for (uint64_t left = sb__counter_read(&waiting_count); left > 0; left--) {
        sb__mutex_lock(&waiting_lock);
        sb_context *context = waiting;
        if (context)
            unlink_waiting(context);
        sb__mutex_unlock(&waiting_lock);
        if (!context)
            return;
        ask(context, waits || context == own);
        if (!sb__quarantine_is_empty(context))
            enlist(context);
        (void)sb__context_drop_owner(context);
    }
}

void sb__quarantine_ask_all(void) {
    ask_all(NULL, true);
}

void sb__quarantine_end(const sb_context *context) {
    ask_all(context, false);
}
