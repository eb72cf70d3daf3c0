/* The memory of objects whose addresses are handles.

   A program may pass any value as a handle. All objects are in one range of addresses, so a value outside of the range
   is recognized without an access to it. The first 4 bytes of each object contain its kind. */
#include "driver.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 16, STEP = 1 << 20, LARGEST_KEPT = 1024, CLASSES = LARGEST_KEPT / ALIGNMENT + 1 };
#define RANGE_BYTES (1ull << 34)

struct unused { /* an object that was given back */
    uint64_t kind; /* of no object */
    struct unused *next;
};

static unsigned char *range;
static size_t used, accessible;
static struct unused *given_back[CLASSES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t whole(size_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int reserve(void) {
    void *mapped = mmap(NULL, RANGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return 0;
    range = mapped;
    return 1;
}

/* Return zeroed memory at the end of the used part of the range. */
static void *extend(size_t size) {
    if ((range == NULL && !reserve()) || size > RANGE_BYTES - used)
        return NULL;
    if (used + size > accessible) {
        size_t more = (used + size - accessible + STEP - 1) / STEP * STEP;
        if (more > RANGE_BYTES - accessible ||
            mprotect(range + accessible, more, PROT_READ | PROT_WRITE) != 0)
            return NULL;
        accessible += more;
    }
    void *made = range + used;
    __atomic_store_n(&used, used + size, __ATOMIC_RELEASE);
    return made;
}

void *make_handle(size_t size) {
    size = whole(size);
    struct unused **kept = size <= LARGEST_KEPT ? &given_back[size / ALIGNMENT] : NULL;
    pthread_mutex_lock(&lock);
    void *made = kept != NULL ? *kept : NULL;
    if (made != NULL)
        *kept = (*kept)->next;
    else
        made = extend(size);
    pthread_mutex_unlock(&lock);
    return made != NULL ? memset(made, 0, size) : NULL;
}

void end_handle(void *handle, size_t size) {
    struct unused *ended = handle;
    size = whole(size);
    if (ended == NULL || size > LARGEST_KEPT)
        return;
    pthread_mutex_lock(&lock);
    *ended = (struct unused){0, given_back[size / ALIGNMENT]};
    given_back[size / ALIGNMENT] = ended;
    pthread_mutex_unlock(&lock);
}

uint32_t kind_of(const void *handle) {
    size_t at = (uintptr_t)handle - (uintptr_t)range;
    uint32_t kind = 0;
    if ((uintptr_t)handle % sizeof(void *) == 0 && at < __atomic_load_n(&used, __ATOMIC_ACQUIRE))
        memcpy(&kind, handle, sizeof kind);
    return kind;
}
