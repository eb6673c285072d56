/* Retired storage that the device may still be using. It goes back only once
   the work that may touch it is proven over; until then it waits here, counts
   as live, and is asked for again at every synchronise, trim and release.

   Each entry waits in the list of one stream among its users, the first that
   is not known to be over. So a release asks each stream once, whatever the
   number of entries, and an entry moves once for each of its users.

   The thread that released the context may have been the last that could ask,
   or an entry may itself own the context: so a list of all contexts that wait
   retains each, and is asked whenever a context is trimmed or ends. */
#include "context/context.h"

static sb__mutex waiting_lock = SB__MUTEX_INIT;
static sb_context *waiting; /* by next_waiting */
static sb_context **waiting_end = &waiting;
static sb__counter waiting_count;
static sb__counter lost_bytes;

void sb__quarantine_forked(void) {
    waiting_lock = (sb__mutex)SB__MUTEX_INIT;
    waiting = NULL; /* the parent's */
    waiting_end = &waiting;
    sb__counter_subtract(&waiting_count, sb__counter_read(&waiting_count));
    sb__counter_subtract(&lost_bytes, sb__counter_read(&lost_bytes));
}

/* --- contexts that wait ----------------------------------------------------------- */

/* Under the lock. */
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

/* The caller owns the context, too. */
static void delist(sb_context *context) {
    sb__mutex_lock(&waiting_lock);
    bool leaves = context->waiting_link && sb__quarantine_is_empty(context);
    if (leaves)
        unlink_waiting(context);
    sb__mutex_unlock(&waiting_lock);
    if (leaves)
        (void)sb__context_let_go(context);
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

/* A list is its last entry, whose `next` is the first; NULL: it is empty. */
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
    join(&quarantine->waiting[first_user(entry->users)], entry);
    sb__mutex_unlock(&quarantine->lock);
}

/* The entries that wait for the next bit from `*bit` on; NULL: there are none. */
static struct sb__quarantined *take_next(struct sb__quarantine *quarantine, int *bit) {
    struct sb__quarantined *entries = NULL;
    sb__mutex_lock(&quarantine->lock);
    while (*bit < 64 && !quarantine->waiting[*bit])
        ++*bit;
    if (*bit < 64) {
        entries = quarantine->waiting[*bit];
        quarantine->waiting[*bit] = NULL;
    }
    sb__mutex_unlock(&quarantine->lock);
    return entries;
}

/* The work of a bit is over: its entries wait for their next user, or are `over`. */
static void advance(struct sb__quarantine *quarantine, struct sb__quarantined *entries, int bit,
                    struct sb__quarantined **over) {
    sb__mutex_lock(&quarantine->lock);
    while (entries) {
        struct sb__quarantined *entry = take_first(&entries);
        entry->users &= ~((uint64_t)1 << bit);
        join(entry->users ? &quarantine->waiting[first_user(entry->users)] : over, entry);
    }
    sb__mutex_unlock(&quarantine->lock);
}

static void put_back(struct sb__quarantine *quarantine, struct sb__quarantined *entries, int bit) {
    sb__mutex_lock(&quarantine->lock);
    join(&quarantine->waiting[bit], entries);
    sb__mutex_unlock(&quarantine->lock);
}

/* Runs deleters, which may call the library: every list is whole by now. */
static void give_back(struct sb__quarantine *quarantine, struct sb__quarantined *over) {
    while (over) {
        struct sb__quarantined *entry = take_first(&over);
        sb__counter_subtract(&quarantine->bytes, entry->bytes);
        entry->give_back(entry);
    }
}

/* Streams are asked without the lock, since that takes long. A thread that asks meanwhile asks for
   the other entries. */
void sb__quarantine_ask(sb_context *context) {
    struct sb__quarantine *quarantine = &context->quarantine;
    struct sb__quarantined *entries, *over = NULL;
    if (sb__quarantine_is_empty(context) || !sb__context_is_ours(context))
        return;
    for (int bit = 0; (entries = take_next(quarantine, &bit)); bit++) {
        if (sb__streams_over(context, (uint64_t)1 << bit))
            advance(quarantine, entries, bit, &over);
        else
            put_back(quarantine, entries, bit);
    }
    give_back(quarantine, over);
    if (sb__quarantine_is_empty(context))
        delist(context);
}

bool sb__quarantine_is_empty(const sb_context *context) {
    return !sb__counter_read(&context->quarantine.bytes);
}

/* Each is taken out of the list before it is asked, since that runs deleters. */
void sb__quarantine_ask_all(void) {
    for (uint64_t left = sb__counter_read(&waiting_count); left > 0; left--) {
        sb__mutex_lock(&waiting_lock);
        sb_context *context = waiting;
        if (context)
            unlink_waiting(context);
        sb__mutex_unlock(&waiting_lock);
        if (!context)
            return;
        sb__quarantine_ask(context);
        if (!sb__quarantine_is_empty(context))
            enlist(context);
        (void)sb__context_let_go(context);
    }
}
