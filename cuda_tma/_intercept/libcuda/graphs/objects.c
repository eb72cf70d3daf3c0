/* The objects that a program passes to graphs. The library destroys an object when no graph keeps it. */
#include "graphs.h"

#include <stdlib.h>

enum { OBJECT = 0x06A9B0B1, DEAD = 0xDEAD0000, MOVE = 1 };

struct object {
    uint32_t magic, references;
    void *pointer;
    void (*destroy)(void *);
};

static void give_up(struct object *object, unsigned count) {
    object->references -= count < object->references ? count : object->references;
    if (object->references > 0)
        return;
    object->magic = DEAD;
    object->destroy(object->pointer);
}

static CUresult keep(struct objects *objects, struct object *object) {
    struct object **items = realloc(objects->items, (objects->count + 1) * sizeof *items);
    REQUIRE(items != NULL, OUT_OF_MEMORY);
    objects->items = items;
    items[objects->count++] = object;
    ++object->references;
    return SUCCESS;
}

CUresult copy_objects(struct objects *target, const struct objects *source) {
    for (size_t i = 0; i < source->count; ++i)
        CHECK(keep(target, source->items[i]));
    return SUCCESS;
}

void end_objects(struct objects *objects) {
    for (size_t i = 0; i < objects->count; ++i)
        give_up(objects->items[i], 1);
    free(objects->items);
    *objects = (struct objects){0, NULL};
}

static CUresult given_object(const struct object *object) {
    CHECK(ready());
    return kind_of(object) == OBJECT ? SUCCESS : INVALID_VALUE;
}

CUresult cuUserObjectCreate(void **object, void *pointer, void (*destroy)(void *), unsigned count, unsigned flags) {
    (void)flags;
    CHECK(ready());
    REQUIRE(object != NULL && destroy != NULL && count > 0, INVALID_VALUE);
    struct object *made = make_handle(sizeof *made);
    REQUIRE(made != NULL, OUT_OF_MEMORY);
    *made = (struct object){OBJECT, count, pointer, destroy};
    *object = made;
    return SUCCESS;
}

CUresult cuUserObjectRetain(struct object *object, unsigned count) {
    CHECK(given_object(object));
    object->references += count;
    return SUCCESS;
}

CUresult cuUserObjectRelease(struct object *object, unsigned count) {
    CHECK(given_object(object));
    give_up(object, count);
    return SUCCESS;
}

CUresult cuGraphRetainUserObject(void *graph, struct object *object, unsigned count, unsigned flags) {
    struct objects *objects = objects_of(graph);
    CHECK(given_object(object));
    REQUIRE(objects != NULL && count > 0, INVALID_VALUE);
    for (unsigned i = 0; i < count; ++i)
        CHECK(keep(objects, object));
    if (flags & MOVE) /* The references of the program become references of the graph. */
        give_up(object, count);
    return SUCCESS;
}

CUresult cuGraphReleaseUserObject(void *graph, struct object *object, unsigned count) {
    struct objects *objects = objects_of(graph);
    CHECK(given_object(object));
    REQUIRE(objects != NULL, INVALID_VALUE);
    for (size_t i = objects->count; i-- > 0 && count > 0;)
        if (objects->items[i] == object) {
            objects->items[i] = objects->items[--objects->count];
            give_up(object, 1);
            --count;
        }
    return count == 0 ? SUCCESS : INVALID_VALUE;
}
