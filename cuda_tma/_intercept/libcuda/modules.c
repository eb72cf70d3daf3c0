/* The entries for modules and libraries, which are one kind of object in this library, and for their functions and
   variables. */
#include "images.h"

#include <stdlib.h>
#include <string.h>

enum { MODULE = 0x30D01E00, FUNCTION = 0xF0C71000, DEAD = 0xDEAD0000, MAX_DYNAMIC_SHARED = 8 };

/* ---- the description that ASK_LOAD returns ---- */

struct reader {
    const unsigned char *next, *end;
    int is_short;
};

static void take(struct reader *reader, void *target, size_t size) {
    reader->is_short |= (size_t)(reader->end - reader->next) < size;
    if (reader->is_short) {
        memset(target, 0, size);
        return;
    }
    memcpy(target, reader->next, size);
    reader->next += size;
}

static char *take_name(struct reader *reader) {
    uint16_t length;
    take(reader, &length, sizeof length);
    char *name = calloc(1, length + 1);
    if (name == NULL)
        reader->is_short = 1;
    else
        take(reader, name, length);
    return name;
}

static void take_function(struct reader *reader, struct module *module, uint32_t index) {
    struct function *function = &module->functions[index];
    function->magic = FUNCTION;
    function->index = index;
    function->module = module;
    function->name = take_name(reader);
    take(reader, function->attributes, sizeof function->attributes);
    take(reader, &function->count, sizeof function->count);
    if (function->count > (size_t)(reader->end - reader->next) / sizeof(struct parameter))
        reader->is_short = 1;
    if (reader->is_short)
        return;
    function->parameters = calloc(function->count + 1, sizeof(struct parameter));
    take(reader, function->parameters, function->count * sizeof(struct parameter));
}

static struct module *read_module(const struct bytes *reply) {
    struct reader reader = {reply->data, reply->data + reply->size, 0};
    struct module *module = make_handle(sizeof *module);
    if (module == NULL)
        return NULL;
    module->magic = MODULE;
    take(&reader, &module->number, sizeof module->number);
    take(&reader, &module->functions_count, sizeof module->functions_count);
    take(&reader, &module->variables_count, sizeof module->variables_count);
    if (reader.is_short || module->functions_count > reply->size || module->variables_count > reply->size)
        return NULL;
    module->functions = make_handle((module->functions_count + 1) * sizeof(struct function));
    module->variables = calloc(module->variables_count + 1, sizeof(struct variable));
    if (module->functions == NULL || module->variables == NULL)
        return NULL;
    for (uint32_t i = 0; i < module->functions_count && !reader.is_short; ++i)
        take_function(&reader, module, i);
    for (uint32_t i = 0; i < module->variables_count && !reader.is_short; ++i) {
        module->variables[i].name = take_name(&reader);
        take(&reader, &module->variables[i].size, sizeof(uint64_t));
    }
    return reader.is_short ? NULL : module;
}

/* Allocate memory for each variable, and request the values of the variables from Python. */
static CUresult place(struct module *module) {
    uint32_t count = module->variables_count;
    uint64_t *data = calloc(count + 1, sizeof *data);
    REQUIRE(data != NULL, OUT_OF_MEMORY);
    data[0] = module->number;
    CUresult result = SUCCESS;
    for (uint32_t i = 0; i < count && result == SUCCESS; ++i) {
        struct variable *variable = &module->variables[i];
        result = allocate(&variable->address, variable->size ? variable->size : 1, VARIABLE);
        data[i + 1] = variable->address;
    }
    if (result == SUCCESS)
        result = ask(ASK_PLACE, data, (count + 1) * sizeof *data, NULL);
    free(data);
    return result;
}

static CUresult load(void **handle, struct bytes *image, const void *context) {
    struct bytes reply = {NULL, 0};
    CUresult result = ask(ASK_LOAD, image->data, image->size, &reply);
    free(image->data);
    struct module *module = result == SUCCESS ? read_module(&reply) : NULL;
    free(reply.data);
    CHECK(result);
    REQUIRE(module != NULL, INVALID_IMAGE);
    CHECK(place(module));
    module->context = context;
    *handle = module;
    return SUCCESS;
}

/* ---- handles ---- */

static CUresult given_module(const struct module *module) {
    CHECK(ready());
    return kind_of(module) == MODULE ? SUCCESS : INVALID_HANDLE;
}

struct function *function_of(void *handle) {
    struct function *function = handle;
    return kind_of(function) == FUNCTION ? function : NULL;
}

static CUresult load_data(void **module, const void *image, const void *context) {
    struct bytes found;
    CHECK(ready_in_context());
    REQUIRE(module != NULL, INVALID_VALUE);
    CHECK(image_bytes(image, &found));
    return load(module, &found, context);
}

CUresult cuModuleLoadData(void **module, const void *image) {
    return load_data(module, image, current_context());
}

CUresult cuModuleLoadDataEx(void **module, const void *image, unsigned count, void *options, void **values) {
    (void)count, (void)options, (void)values;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(void **module, const void *image) {
    return cuModuleLoadData(module, image);
}

static CUresult load_file(void **module, const char *path, const void *context) {
    struct bytes found;
    CHECK(ready_in_context());
    REQUIRE(module != NULL, INVALID_VALUE);
    CHECK(file_bytes(path, &found));
    return load(module, &found, context);
}

CUresult cuModuleLoad(void **module, const char *path) {
    return load_file(module, path, current_context());
}

CUresult cuModuleUnload(void *handle) {
    CHECK(given_module(handle));
    struct module *module = handle;
    module->magic = DEAD;
    for (uint32_t i = 0; i < module->functions_count; ++i)
        module->functions[i].magic = DEAD;
    CUresult result = ask(ASK_UNLOAD, &module->number, sizeof module->number, NULL);
    for (uint32_t i = 0; i < module->variables_count; ++i)
        release(module->variables[i].address, 1 << VARIABLE);
    return result;
}

CUresult cuModuleGetLoadingMode(int *mode) {
    REQUIRE(mode != NULL, INVALID_VALUE);
    *mode = 1; /* The mode means that a module is loaded eagerly. */
    return SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned *count, void *module) {
    CHECK(given_module(module));
    REQUIRE(count != NULL, INVALID_VALUE);
    *count = ((struct module *)module)->functions_count;
    return SUCCESS;
}

CUresult cuModuleEnumerateFunctions(void **functions, unsigned count, void *handle) {
    CHECK(given_module(handle));
    REQUIRE(functions != NULL || count == 0, INVALID_VALUE);
    struct module *module = handle;
    for (uint32_t i = 0; i < count && i < module->functions_count; ++i)
        functions[i] = &module->functions[i];
    return SUCCESS;
}

CUresult cuModuleGetFunction(void **function, void *handle, const char *name) {
    CHECK(given_module(handle));
    REQUIRE(function != NULL && name != NULL, INVALID_VALUE);
    struct module *module = handle;
    for (uint32_t i = 0; i < module->functions_count; ++i)
        if (strcmp(module->functions[i].name, name) == 0) {
            *function = &module->functions[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, void *handle, const char *name) {
    CHECK(given_module(handle));
    REQUIRE(name != NULL, INVALID_VALUE);
    struct module *module = handle;
    for (uint32_t i = 0; i < module->variables_count; ++i)
        if (strcmp(module->variables[i].name, name) == 0) {
            if (address != NULL)
                *address = module->variables[i].address;
            if (size != NULL)
                *size = module->variables[i].size;
            return SUCCESS;
        }
    return NOT_FOUND;
}

/* ---- libraries ---- */

CUresult cuLibraryLoadData(void **library, const void *code, void *options, void **values, unsigned count,
                           void *library_options, void **library_values, unsigned library_count) {
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    return load_data(library, code, NULL);
}

CUresult cuLibraryLoadFromFile(void **library, const char *path) {
    return load_file(library, path, NULL);
}

CUresult cuLibraryUnload(void *library) {
    return cuModuleUnload(library);
}

CUresult cuLibraryGetModule(void **module, void *library) {
    CHECK(given_module(library));
    REQUIRE(module != NULL, INVALID_VALUE);
    *module = library;
    return SUCCESS;
}

CUresult cuLibraryGetKernel(void **kernel, void *library, const char *name) {
    return cuModuleGetFunction(kernel, library, name);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, void *library, const char *name) {
    return cuModuleGetGlobal_v2(address, size, library, name);
}

CUresult cuLibraryGetKernelCount(unsigned *count, void *library) {
    return cuModuleGetFunctionCount(count, library);
}

CUresult cuLibraryEnumerateKernels(void **kernels, unsigned count, void *library) {
    return cuModuleEnumerateFunctions(kernels, count, library);
}
