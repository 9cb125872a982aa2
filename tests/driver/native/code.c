/* Modules, libraries and their entries. What an entry is, the engine reads from the text and tells.
 *
 * A CUkernel and a CUfunction of an entry are one handle, and a library is its own module.
 */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_ROOM = 4096, JIT_INFO_LOG = 3, JIT_ERROR_LOG = 5, PORTABLE_SHARED = 48 << 10 };

static uint64_t numbered;

static struct code *code_by_id(uint64_t id) {
    for (struct object *each = object_first(); each; each = each->next)
        if ((each->kind == MODULE || each->kind == LIBRARY) && ((struct code *)each)->id == id)
            return (struct code *)each;
    return NULL;
}

static uint32_t *copied(const uint32_t *values, unsigned count) {
    uint32_t *copy = calloc(count ? count : 1, sizeof *copy);
    if (copy && count)
        memcpy(copy, values, count * sizeof *copy);
    return copy;
}

/* The engine's word on one entry of the code that it is reading. */
EXPORT CUresult standin_define(uint64_t id, const struct description *of) {
    struct code *code = code_by_id(id);
    REQUIRE(code, CUDA_ERROR_INVALID_HANDLE);
    struct function *made = object_new(FUNCTION, sizeof *made);
    REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->code = code;
    made->name = strdup(of->name);
    made->params = of->params;
    made->offsets = copied(of->offsets, of->params);
    made->sizes = copied(of->sizes, of->params);
    memcpy(made->reqntid, of->reqntid, sizeof made->reqntid);
    memcpy(made->cluster, of->cluster, sizeof made->cluster);
    made->max_threads = of->max_threads;
    made->static_shared = of->static_shared;
    made->registers = of->registers;
    made->max_rank = of->max_rank;
    made->counts_clusters = of->counts_clusters;
    made->ptx_version = of->ptx_version;
    made->max_dynamic = of->static_shared < PORTABLE_SHARED ? PORTABLE_SHARED - of->static_shared : 0;
    return made->name && made->offsets && made->sizes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* And on one variable, with where its memory lies. */
EXPORT CUresult standin_define_global(uint64_t id, const char *name, uint64_t address, uint64_t host, uint64_t bytes) {
    struct code *code = code_by_id(id);
    REQUIRE(code, CUDA_ERROR_INVALID_HANDLE);
    return memory_add_global(code, name, address, host, bytes);
}

static void drop_code(struct code *code) {
    for (struct object *each = object_first(), *next; each; each = next) {
        next = each->next;
        struct function *function = (struct function *)each;
        if (each->kind == FUNCTION && function->code == code) {
            free(function->name);
            free(function->offsets);
            free(function->sizes);
            object_free(function);
        }
    }
    memory_drop_globals(code);
    if (standin_current_engine.unload)
        standin_current_engine.unload(code->id);
    object_free(code);
}

/* The text of STANDIN_LOG, or of the engine, into the caller's buffer for the JIT's errors. */
static void give_log(const char *log, unsigned count, const int *options, void **values) {
    char *room = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == JIT_ERROR_LOG)
            room = values[i];
        else if (options[i] == JIT_ERROR_LOG + 1)
            size = (size_t)(uintptr_t)values[i];
        else if (options[i] == JIT_INFO_LOG && values[i])
            *(char *)values[i] = 0;
    }
    if (room && size)
        snprintf(room, size, "%s", log);
}

static CUresult load(struct code **code, enum kind kind, const char *image, unsigned count, const int *options,
                     void **values) {
    CUcontext context = current_context();
    REQUIRE(context || kind == LIBRARY, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(code && image, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(standin_current_engine.load, CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE(memcmp(image, "\177ELF", 4) != 0, CUDA_ERROR_INVALID_IMAGE);
    struct code *made = object_new(kind, sizeof *made);
    REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->id = ++numbered;
    made->device = context ? context->device : 0;
    char log[LOG_ROOM] = "";
    CUresult status = standin_current_engine.load(made->id, image, strlen(image), device_model(made->device)->sm,
                                                  device_cuda_version(), log, sizeof log);
    give_log(log, count, options, values);
    if (status) {
        drop_code(made);
        return status;
    }
    *code = made;
    return CUDA_SUCCESS;
}

/* An order for a failure of this call may bring a JIT log: that of STANDIN_LOG. */
static void give_ordered_log(unsigned count, const int *options, void **values) {
    const char *log = getenv("STANDIN_LOG");
    if (log)
        give_log(log, count, options, values);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values) {
    give_ordered_log(count, options, values);
    BEGIN;
    return load(module, MODULE, image, count, options, values);
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    BEGIN;
    return load(module, MODULE, image, 0, NULL, NULL);
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
    BEGIN;
    REQUIRE(object_is(module, MODULE), CUDA_ERROR_INVALID_HANDLE);
    drop_code(module);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, int *options, void **values, unsigned count,
                                  int *library_options, void **library_values, unsigned library_count) {
    (void)library_options;
    (void)library_values;
    (void)library_count;
    give_ordered_log(count, options, values);
    BEGIN;
    return load(library, LIBRARY, image, count, options, values);
}

EXPORT CUresult cuLibraryUnload(CUlibrary library) {
    BEGIN;
    REQUIRE(object_is(library, LIBRARY), CUDA_ERROR_INVALID_HANDLE);
    drop_code(library);
    return CUDA_SUCCESS;
}

static bool code_is_known(const struct code *code) {
    return object_is(code, MODULE) || object_is(code, LIBRARY);
}

/* The entries of a code, at most so many of them; how many there are. */
static unsigned entries_of(const struct code *code, struct function **found, unsigned most) {
    unsigned count = 0;
    for (struct object *each = object_first(); each; each = each->next) {
        struct function *function = (struct function *)each;
        if (each->kind != FUNCTION || function->code != code)
            continue;
        if (count < most)
            found[count] = function;
        count++;
    }
    return count;
}

static CUresult entry_named(struct function **function, const struct code *code, const char *name) {
    REQUIRE(code_is_known(code), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(function && name, CUDA_ERROR_INVALID_VALUE);
    for (struct object *each = object_first(); each; each = each->next) {
        struct function *entry = (struct function *)each;
        if (each->kind == FUNCTION && entry->code == code && !strcmp(entry->name, name)) {
            if (standin_current_engine.prepare)
                standin_current_engine.prepare(code->id, name);
            *function = entry;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    BEGIN;
    return entry_named(function, module, name);
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    BEGIN;
    return entry_named(kernel, library, name);
}

EXPORT CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
    BEGIN;
    REQUIRE(code_is_known(module), CUDA_ERROR_INVALID_HANDLE);
    *count = entries_of(module, NULL, 0);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
    BEGIN;
    REQUIRE(code_is_known(library), CUDA_ERROR_INVALID_HANDLE);
    *count = entries_of(library, NULL, 0);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library) {
    BEGIN;
    REQUIRE(code_is_known(library), CUDA_ERROR_INVALID_HANDLE);
    entries_of(library, kernels, count);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    BEGIN;
    REQUIRE(object_is(library, LIBRARY), CUDA_ERROR_INVALID_HANDLE);
    *module = library;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name) {
    BEGIN;
    REQUIRE(code_is_known(module), CUDA_ERROR_INVALID_HANDLE);
    return memory_find_global(module, name, address, bytes);
}

EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name) {
    BEGIN;
    REQUIRE(code_is_known(library), CUDA_ERROR_INVALID_HANDLE);
    return memory_find_global(library, name, address, bytes);
}

/* --- entries ---------------------------------------------------------------------------------------------------- */

#define KNOWN(function) REQUIRE(object_is(function, FUNCTION), CUDA_ERROR_INVALID_HANDLE)

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    BEGIN;
    KNOWN(kernel);
    *function = kernel;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
    BEGIN;
    KNOWN(kernel);
    *library = kernel->code;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
    BEGIN;
    KNOWN(function);
    *module = function->code;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelGetName(const char **name, CUkernel kernel) {
    BEGIN;
    KNOWN(kernel);
    *name = kernel->name;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetName(const char **name, CUfunction function) {
    BEGIN;
    KNOWN(function);
    *name = function->name;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncLoad(CUfunction function) {
    BEGIN;
    KNOWN(function);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncIsLoaded(int *state, CUfunction function) {
    BEGIN;
    KNOWN(function);
    *state = 1;
    return CUDA_SUCCESS;
}

static CUresult param_info(const struct function *function, size_t index, size_t *offset, size_t *size) {
    KNOWN(function);
    REQUIRE(index < function->params, CUDA_ERROR_INVALID_VALUE);
    if (offset)
        *offset = function->offsets[index];
    if (size)
        *size = function->sizes[index];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
    BEGIN;
    return param_info(function, index, offset, size);
}

EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
    BEGIN;
    return param_info(kernel, index, offset, size);
}

enum {
    MAX_THREADS, SHARED_SIZE, CONST_SIZE, LOCAL_SIZE, NUM_REGS, PTX_VERSION, BINARY_VERSION, CACHE_MODE_CA,
    MAX_DYNAMIC_SHARED, CARVEOUT, CLUSTER_MUST_BE_SET, CLUSTER_WIDTH, CLUSTER_HEIGHT, CLUSTER_DEPTH,
    NON_PORTABLE_CLUSTER, CLUSTER_POLICY,
};

static CUresult get_attribute(int *value, int attribute, const struct function *function) {
    KNOWN(function);
    switch (attribute) {
    case MAX_THREADS:
        *value = (int)function->max_threads;
        return CUDA_SUCCESS;
    case SHARED_SIZE:
        *value = (int)function->static_shared;
        return CUDA_SUCCESS;
    case NUM_REGS:
        *value = (int)function->registers;
        return CUDA_SUCCESS;
    case PTX_VERSION:
        *value = (int)function->ptx_version;
        return CUDA_SUCCESS;
    case BINARY_VERSION:
        *value = device_model(function->code->device)->sm;
        return CUDA_SUCCESS;
    case MAX_DYNAMIC_SHARED:
        *value = (int)function->max_dynamic;
        return CUDA_SUCCESS;
    case CARVEOUT:
        *value = -1;
        return CUDA_SUCCESS;
    case CLUSTER_MUST_BE_SET:
        *value = function->cluster[0] > 0;
        return CUDA_SUCCESS;
    case CLUSTER_WIDTH:
    case CLUSTER_HEIGHT:
    case CLUSTER_DEPTH:
        *value = (int)function->cluster[attribute - CLUSTER_WIDTH];
        return CUDA_SUCCESS;
    case NON_PORTABLE_CLUSTER:
        *value = (int)function->non_portable;
        return CUDA_SUCCESS;
    case CONST_SIZE:
    case LOCAL_SIZE:
    case CACHE_MODE_CA:
    case CLUSTER_POLICY:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult set_attribute(struct function *function, int attribute, int value) {
    KNOWN(function);
    const struct model *model = device_model(function->code->device);
    switch (attribute) {
    case MAX_DYNAMIC_SHARED:
        REQUIRE(value >= 0 && (uint32_t)value + function->static_shared <= (uint32_t)model->optin,
                CUDA_ERROR_INVALID_VALUE);
        function->max_dynamic = (uint32_t)value;
        return CUDA_SUCCESS;
    case NON_PORTABLE_CLUSTER:
        REQUIRE(model->sm >= 90, CUDA_ERROR_INVALID_VALUE);
        function->non_portable = value != 0;
        return CUDA_SUCCESS;
    case CARVEOUT:
    case CLUSTER_POLICY:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
    BEGIN;
    return get_attribute(value, attribute, function);
}

EXPORT CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device) {
    BEGIN;
    REQUIRE(device_model(device), CUDA_ERROR_INVALID_DEVICE);
    return get_attribute(value, attribute, kernel);
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    BEGIN;
    return set_attribute(function, attribute, value);
}

EXPORT CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device) {
    BEGIN;
    REQUIRE(device_model(device), CUDA_ERROR_INVALID_DEVICE);
    return set_attribute(kernel, attribute, value);
}
