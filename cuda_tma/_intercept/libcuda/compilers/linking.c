/* The linker of the driver. The simulator runs PTX, so a link returns the PTX of its inputs in place of machine code.
   */
#include "linking.h"

#include "../images.h"

#include <stdlib.h>
#include <string.h>

enum { LINK = 0x11417E00, DEAD = 0xDEAD0000 };
static const size_t MOST_LINKED_BYTES = 1u << 30;

struct link *new_link(void) {
    struct link *link = make_handle(sizeof *link);
    if (link != NULL)
        link->magic = LINK;
    return link;
}

int is_link(const struct link *link) {
    return kind_of(link) == LINK;
}

CUresult add_input(struct link *link, const void *data, size_t size) {
    REQUIRE(data != NULL && size > 0 && size <= MOST_LINKED_BYTES - link->inputs.size, INVALID_VALUE);
    uint64_t length = size;
    unsigned char *longer = realloc(link->inputs.data, link->inputs.size + sizeof length + size);
    REQUIRE(longer != NULL, OUT_OF_MEMORY);
    memcpy(longer + link->inputs.size, &length, sizeof length);
    memcpy(longer + link->inputs.size + sizeof length, data, size);
    link->inputs.data = longer;
    link->inputs.size += sizeof length + size;
    return SUCCESS;
}

CUresult add_input_file(struct link *link, const char *path) {
    struct bytes found;
    CHECK(file_bytes(path, &found));
    CUresult result = add_input(link, found.data, found.size);
    free(found.data);
    return result;
}

CUresult complete_link(struct link *link) {
    free(link->linked.data);
    link->linked = (struct bytes){NULL, 0};
    return ask(ASK_LINK, link->inputs.data, link->inputs.size, &link->linked);
}

void end_link(struct link *link) {
    free(link->inputs.data);
    free(link->linked.data);
    *link = (struct link){.magic = DEAD};
}

/* ---- the driver's entries ---- */

CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, void **state) {
    (void)count, (void)options, (void)values;
    CHECK(ready_in_context());
    REQUIRE(state != NULL, INVALID_VALUE);
    *state = new_link();
    return *state != NULL ? SUCCESS : OUT_OF_MEMORY;
}

CUresult cuLinkAddData_v2(void *state, int type, const void *data, size_t size) {
    (void)type;
    CHECK(ready());
    REQUIRE(is_link(state), INVALID_HANDLE);
    return add_input(state, data, size);
}

CUresult cuLinkAddFile_v2(void *state, int type, const char *path) {
    (void)type;
    CHECK(ready());
    REQUIRE(is_link(state), INVALID_HANDLE);
    return add_input_file(state, path);
}

CUresult cuLinkComplete(void *state, void **code, size_t *size) {
    CHECK(ready());
    REQUIRE(is_link(state), INVALID_HANDLE);
    REQUIRE(code != NULL, INVALID_VALUE);
    struct link *link = state;
    CHECK(complete_link(link));
    *code = link->linked.data;
    if (size != NULL)
        *size = link->linked.size;
    return SUCCESS;
}

CUresult cuLinkDestroy(void *state) {
    CHECK(ready());
    REQUIRE(is_link(state), INVALID_HANDLE);
    end_link(state);
    return SUCCESS;
}
