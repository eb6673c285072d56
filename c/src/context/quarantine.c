/* What was given up while the device may still be using it. Storage goes back
   only once the work that may touch it is proven over; until then it waits
   here, counts as live, and is asked for again at every synchronise, trim and
   release. A context that ends before its device answers stays behind with
   what it keeps; whichever context is trimmed or ends next asks for it again. */
#include "context/context.h"

static sb__counter leaked; /* bytes that contexts stayed behind with */
static pthread_mutex_t stayed_lock = PTHREAD_MUTEX_INITIALIZER;
static sb_context *stayed; /* contexts that nobody owns any more, by next_stayed */

uint64_t sb__quarantine_leaked(void) {
    return sb__counter_read(&leaked);
}

static void push(struct sb__quarantine *quarantine, struct sb__quarantined *entry) {
    pthread_mutex_lock(&quarantine->lock);
    entry->next = quarantine->first;
    quarantine->first = entry;
    pthread_mutex_unlock(&quarantine->lock);
}

void sb__quarantine_put(sb_context *context, struct sb__quarantined *entry) {
    (void)sb__counter_add(&context->quarantine.bytes, entry->bytes);
    push(&context->quarantine, entry);
}

/* Entries are asked for without the lock: that takes long, and what is given back may run a
   deleter. Whoever asks meanwhile asks for the others. */
void sb__quarantine_ask(sb_context *context) {
    struct sb__quarantine *quarantine = &context->quarantine;
    if (!sb__counter_read(&quarantine->bytes) || !sb__context_is_ours(context))
        return;
    pthread_mutex_lock(&quarantine->lock);
    struct sb__quarantined *next = quarantine->first;
    quarantine->first = NULL;
    pthread_mutex_unlock(&quarantine->lock);
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
}

bool sb__quarantine_is_empty(const sb_context *context) {
    return !sb__counter_read(&context->quarantine.bytes);
}

void sb__quarantine_stay(sb_context *context) {
    (void)sb__counter_add(&leaked, sb__counter_read(&context->quarantine.bytes));
    pthread_mutex_lock(&stayed_lock);
    context->next_stayed = stayed;
    stayed = context;
    pthread_mutex_unlock(&stayed_lock);
}

/* Each is taken out of the list before it is asked, so that nobody else asks it meanwhile. Whoever
   finds the list busy leaves it to the other; in a forked child nobody may be there. */
void sb__quarantine_ask_stayed(void) {
    if (!sb__counter_read(&leaked) || pthread_mutex_trylock(&stayed_lock) != 0)
        return;
    sb_context *next = stayed;
    stayed = NULL;
    pthread_mutex_unlock(&stayed_lock);
    while (next) {
        sb_context *context = next;
        next = context->next_stayed;
        sb__counter_subtract(&leaked, sb__counter_read(&context->quarantine.bytes));
        sb__context_end(context);
    }
}
