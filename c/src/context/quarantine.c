/* What was given up while the device may still be using it. Storage goes back
   only once the work that may touch it is proven over; until then it waits
   here, counts as live, and is asked for again at every synchronise, trim and
   release. Whoever let go of the context may have been the last who could ask,
   or what waits may itself own the context: so a list of all contexts that
   wait retains each, and is asked whenever a context is trimmed or ends. */
#include "context/context.h"

static sb__mutex waiting_lock = SB__MUTEX_INIT;
static sb_context *waiting; /* by next_waiting */
static sb__counter waiting_count;
static sb__counter lost_bytes;

void sb__quarantine_forked(void) {
    waiting_lock = (sb__mutex)SB__MUTEX_INIT;
    waiting = NULL; /* the parent's */
    sb__counter_subtract(&waiting_count, sb__counter_read(&waiting_count));
    sb__counter_subtract(&lost_bytes, sb__counter_read(&lost_bytes));
}

/* Where the list leads to it, or ends. Under the lock. */
static sb_context **link_to(const sb_context *context) {
    sb_context **link = &waiting;
    while (*link && *link != context)
        link = &(*link)->next_waiting;
    return link;
}

static void unlink_at(sb_context **link) {
    *link = (*link)->next_waiting;
    sb__counter_subtract(&waiting_count, 1);
}

static void enlist(sb_context *context) {
    sb__mutex_lock(&waiting_lock);
    sb_context **link = link_to(context);
    if (!*link) {
        *link = sb_context_retain(context);
        context->next_waiting = NULL;
        (void)sb__counter_add(&waiting_count, 1);
    }
    sb__mutex_unlock(&waiting_lock);
}

/* The caller owns the context, too. */
static void delist(sb_context *context) {
    sb__mutex_lock(&waiting_lock);
    sb_context **link = link_to(context);
    bool leaves = *link && sb__quarantine_is_empty(context);
    if (leaves)
        unlink_at(link);
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

static void push(struct sb__quarantine *quarantine, struct sb__quarantined *entry) {
    sb__mutex_lock(&quarantine->lock);
    entry->next = quarantine->first;
    quarantine->first = entry;
    sb__mutex_unlock(&quarantine->lock);
}

void sb__quarantine_put(sb_context *context, struct sb__quarantined *entry) {
    (void)sb__counter_add(&context->quarantine.bytes, entry->bytes);
    enlist(context);
    push(&context->quarantine, entry);
}

/* Entries are asked for without the lock: that takes long, and what is given back may run a
   deleter. Whoever asks meanwhile asks for the others. */
void sb__quarantine_ask(sb_context *context) {
    struct sb__quarantine *quarantine = &context->quarantine;
    if (!sb__counter_read(&quarantine->bytes) || !sb__context_is_ours(context))
        return;
    sb__mutex_lock(&quarantine->lock);
    struct sb__quarantined *next = quarantine->first;
    quarantine->first = NULL;
    sb__mutex_unlock(&quarantine->lock);
    while (next) {
        struct sb__quarantined *entry = next;
        next = entry->next;
        if (!sb__streams_over(context, entry->users)) {
            push(quarantine, entry);
            continue;
        }
        sb__counter_subtract(&quarantine->bytes, entry->bytes);
        entry->give_back(entry);
    }
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
            unlink_at(&waiting);
        sb__mutex_unlock(&waiting_lock);
        if (!context)
            return;
        sb__quarantine_ask(context);
        if (!sb__quarantine_is_empty(context))
            enlist(context);
        (void)sb__context_let_go(context);
    }
}
