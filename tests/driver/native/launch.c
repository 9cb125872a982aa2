/* Streams, events, launches. A launch has run when its call returns; what it did wrong shows in the calls after it. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* --- streams ---------------------------------------------------------------------------------------------------- */

/* Handles 0, 1 and 2 are the default streams. */
bool stream_is_known(CUstream stream) {
    return (uintptr_t)stream <= 2 || object_is(stream, STREAM);
}

static CUresult create_stream(CUstream *stream, unsigned flags, int priority) {
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(stream && flags <= 1, CUDA_ERROR_INVALID_VALUE);
    CUstream made = object_new(STREAM, sizeof *made);
    REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->context = current_context();
    made->flags = flags;
    made->priority = priority;
    *stream = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    BEGIN;
    return create_stream(stream, flags, 0);
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    BEGIN;
    return create_stream(stream, flags, priority);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
    BEGIN;
    REQUIRE(object_is(stream, STREAM), CUDA_ERROR_INVALID_HANDLE);
    object_free(stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    if (standin_is_hung())
        standin_never("cuStreamSynchronize");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamQuery(CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return standin_is_hung() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUcontext context_of(CUstream stream) {
    return (uintptr_t)stream <= 2 ? current_context() : stream->context;
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    *context = context_of(stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, void **green) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    *context = context_of(stream);
    *green = NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetDevice(CUstream stream, CUdevice *device) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(context_of(stream), CUDA_ERROR_INVALID_CONTEXT);
    *device = context_of(stream)->device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetPriority(CUstream stream, int *priority) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    *priority = (uintptr_t)stream <= 2 ? 0 : stream->priority;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned *flags) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    *flags = (uintptr_t)stream <= 2 ? 0 : stream->flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    *status = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    BEGIN;
    (void)flags;
    REQUIRE(stream_is_known(stream) && object_is(event, EVENT), CUDA_ERROR_INVALID_HANDLE);
    return CUDA_SUCCESS;
}

/* --- events ----------------------------------------------------------------------------------------------------- */

enum { NO_TIMING = 2 };

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) {
    BEGIN;
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(event && flags <= 7, CUDA_ERROR_INVALID_VALUE);
    CUevent made = object_new(EVENT, sizeof *made);
    REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->flags = flags;
    *event = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
    BEGIN;
    REQUIRE(object_is(event, EVENT), CUDA_ERROR_INVALID_HANDLE);
    object_free(event);
    return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream) {
    REQUIRE(object_is(event, EVENT) && stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    event->recorded = true;
    event->pending = standin_is_hung();
    event->at = now();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
    BEGIN;
    return record(event, stream);
}

EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    BEGIN;
    (void)flags;
    return record(event, stream);
}

EXPORT CUresult cuEventQuery(CUevent event) {
    BEGIN;
    REQUIRE(object_is(event, EVENT), CUDA_ERROR_INVALID_HANDLE);
    return event->pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
    BEGIN;
    REQUIRE(object_is(event, EVENT), CUDA_ERROR_INVALID_HANDLE);
    if (event->pending)
        standin_never("cuEventSynchronize");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
    BEGIN;
    REQUIRE(object_is(start, EVENT) && object_is(end, EVENT), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(start->recorded && end->recorded && !((start->flags | end->flags) & NO_TIMING), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(!start->pending && !end->pending, CUDA_ERROR_NOT_READY);
    *milliseconds = (float)(end->at - start->at);
    return CUDA_SUCCESS;
}

/* --- what fits -------------------------------------------------------------------------------------------------- */

enum { REGISTERS = 65536, RESERVED_SHARED = 1024, PORTABLE_CLUSTER = 8, CLUSTER_MOST = 16 };

static int least(int a, int b) {
    return a < b ? a : b;
}

/* CTAs of a function that one multiprocessor holds at once. */
int resident_ctas(const struct function *function, int threads, size_t shared) {
    const struct model *model = device_model(function->code->device);
    int whole_warps = (threads + 31) / 32 * 32;
    int total = (int)(function->static_shared + shared) + RESERVED_SHARED;
    int most = least(model->ctas, model->threads / whole_warps);
    most = least(most, model->shared / total);
    return least(most, REGISTERS / (whole_warps * (int)function->registers));
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int threads,
                                                            size_t shared) {
    BEGIN;
    REQUIRE(object_is(function, FUNCTION), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(threads > 0, CUDA_ERROR_INVALID_VALUE);
    *count = resident_ctas(function, threads, shared);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction function, int threads,
                                                                     size_t shared, unsigned flags) {
    BEGIN;
    (void)flags;
    REQUIRE(object_is(function, FUNCTION), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(threads > 0, CUDA_ERROR_INVALID_VALUE);
    *count = resident_ctas(function, threads, shared);
    return CUDA_SUCCESS;
}

/* --- launches --------------------------------------------------------------------------------------------------- */

static bool within(const uint32_t of[3], uint32_t x, uint32_t y, uint32_t z) {
    return of[0] >= 1 && of[1] >= 1 && of[2] >= 1 && of[0] <= x && of[1] <= y && of[2] <= z;
}

static uint64_t product(const uint32_t of[3]) {
    return (uint64_t)of[0] * of[1] * of[2];
}

static CUresult check_block(const struct function *function, const struct geometry *geometry) {
    const uint32_t *block = geometry->block;
    REQUIRE(within(geometry->grid, 0x7fffffff, 65535, 65535), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(within(block, 1024, 1024, 64) && product(block) <= 1024, CUDA_ERROR_INVALID_VALUE);
    bool demanded = function->reqntid[0] != 0;
    REQUIRE(!demanded || !memcmp(block, function->reqntid, sizeof function->reqntid), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(product(block) <= function->max_threads, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    REQUIRE(geometry->shared <= function->max_dynamic, CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

/* The cluster of a launch is that of its attribute, or what the function demands. Grids then count CTAs. */
static CUresult check_cluster(const struct function *function, struct geometry *geometry, bool given) {
    bool demanded = function->cluster[0] != 0;
    if (given && demanded)
        REQUIRE(!memcmp(geometry->cluster, function->cluster, sizeof function->cluster),
                CUDA_ERROR_INVALID_CLUSTER_SIZE);
    if (!given && demanded)
        memcpy(geometry->cluster, function->cluster, sizeof function->cluster);
    const uint32_t *cluster = geometry->cluster;
    if (!given && !demanded)
        return CUDA_SUCCESS;
    REQUIRE(device_model(function->code->device)->sm >= 90, CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE(within(cluster, CLUSTER_MOST, CLUSTER_MOST, CLUSTER_MOST), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    uint32_t most = function->non_portable ? CLUSTER_MOST : PORTABLE_CLUSTER;
    most = function->max_rank && function->max_rank < most ? function->max_rank : most;
    REQUIRE(product(cluster) <= most, CUDA_ERROR_INVALID_CLUSTER_SIZE);
    for (int i = 0; i < 3; i++) {
        if (function->counts_clusters)
            geometry->grid[i] *= cluster[i];
        REQUIRE(geometry->grid[i] % cluster[i] == 0, CUDA_ERROR_INVALID_VALUE);
    }
    return CUDA_SUCCESS;
}

/* The parameters as they lie in the constant bank, read through the array of pointers. */
static uint8_t *gather(const struct function *function, void **arguments, size_t *size) {
    unsigned last = function->params - 1;
    *size = function->params ? function->offsets[last] + function->sizes[last] : 0;
    uint8_t *bank = calloc(*size + 1, 1);
    for (unsigned i = 0; bank && i < function->params; i++)
        memcpy(bank + function->offsets[i], arguments[i], function->sizes[i]);
    return bank;
}

static CUresult run(struct function *function, const struct geometry *geometry, void **arguments) {
    REQUIRE(function->params == 0 || arguments, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(standin_current_engine.launch, CUDA_ERROR_NOT_SUPPORTED);
    size_t size;
    uint8_t *bank = gather(function, arguments, &size);
    REQUIRE(bank, CUDA_ERROR_OUT_OF_MEMORY);
    int status = standin_is_hung()
                     ? CUDA_SUCCESS /* queued behind what never ends */
                     : standin_current_engine.launch(function->code->id, function->name, geometry, bank, size);
    free(bank);
    if (status < 0) {
        standin_hang();
        return CUDA_SUCCESS;
    }
    if (status >> 16)
        standin_stick(status >> 16);
    return status & 0xffff;
}

static CUresult launch(struct function *function, struct geometry *geometry, bool clustered, CUstream stream,
                       void **arguments) {
    REQUIRE(object_is(function, FUNCTION) && stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    CUresult status = check_block(function, geometry);
    status = status ? status : check_cluster(function, geometry, clustered);
    if (status)
        return status;
    const struct model *model = device_model(function->code->device);
    int each = resident_ctas(function, (int)product(geometry->block), geometry->shared);
    REQUIRE(!geometry->cooperative || product(geometry->grid) <= (uint64_t)(each * model->multiprocessors),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    return run(function, geometry, arguments);
}

enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_MOST = 16 };

EXPORT CUresult cuLaunchKernelEx(const struct launch_config *config, CUfunction function, void **arguments,
                                 void **extra) {
    BEGIN;
    REQUIRE(config && !extra, CUDA_ERROR_INVALID_VALUE);
    struct geometry geometry = {.cluster = {1, 1, 1}, .shared = config->shared};
    memcpy(geometry.grid, config->grid, sizeof geometry.grid);
    memcpy(geometry.block, config->block, sizeof geometry.block);
    bool clustered = false;
    for (unsigned i = 0; i < config->count; i++) {
        const struct launch_attribute *attribute = &config->attributes[i];
        REQUIRE(attribute->id >= 0 && attribute->id <= ATTRIBUTE_MOST, CUDA_ERROR_INVALID_VALUE);
        if (attribute->id == ATTRIBUTE_COOPERATIVE)
            geometry.cooperative = attribute->value.number != 0;
        if (attribute->id == ATTRIBUTE_CLUSTER) {
            clustered = true;
            geometry.cluster[0] = attribute->value.cluster.x;
            geometry.cluster[1] = attribute->value.cluster.y;
            geometry.cluster[2] = attribute->value.cluster.z;
        }
    }
    return launch(function, &geometry, clustered, config->stream, arguments);
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **arguments,
                               void **extra) {
    BEGIN;
    REQUIRE(!extra, CUDA_ERROR_INVALID_VALUE);
    struct geometry geometry = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {1, 1, 1}, shared, 0,
    };
    return launch(function, &geometry, false, stream, arguments);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                          CUstream stream, void **arguments) {
    BEGIN;
    struct geometry geometry = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {1, 1, 1}, shared, 1,
    };
    return launch(function, &geometry, false, stream, arguments);
}

/* --- tensor maps ------------------------------------------------------------------------------------------------ */

/* What stands in a map of ours: the driver's own form is nobody's business, but the size is. */
struct tensor_map {
    uint64_t address;
    uint8_t type, rank, interleave, swizzle, promotion, fill, pad[2];
    uint64_t dims[5];
    uint64_t strides[4];
    uint16_t box[5];
    uint8_t steps[5], rest[25];
};

static const uint8_t type_sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

static bool lists_are_valid(unsigned type, unsigned rank, const uint64_t *dims, const uint64_t *strides,
                            const uint32_t *box, const uint32_t *steps, unsigned step) {
    for (unsigned i = 0; i < rank; i++) {
        if (dims[i] < 1 || dims[i] > 1ull << 32 || box[i] < 1 || box[i] > 256 || steps[i] < 1 || steps[i] > 8)
            return false;
        if (i + 1 < rank && (strides[i] % step || strides[i] >= 1ull << 40))
            return false;
    }
    return box[0] * type_sizes[type] % 16 == 0;
}

EXPORT CUresult cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *dims,
                                       const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                                       int interleave, int swizzle, int promotion, int fill) {
    BEGIN;
    static const unsigned spans[] = {0, 32, 64, 128};
    REQUIRE(map && (uintptr_t)map % 64 == 0 && dims && strides && box && steps, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(type >= 0 && (size_t)type < sizeof type_sizes, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(rank >= (interleave ? 3 : 1) && rank <= 5, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(interleave >= 0 && interleave <= 2 && swizzle >= 0 && swizzle <= 3, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(promotion >= 0 && promotion <= 3 && fill >= 0 && fill <= 1, CUDA_ERROR_INVALID_VALUE);
    unsigned step = interleave == 2 ? 32 : 16;
    REQUIRE((uintptr_t)address % step == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(lists_are_valid((unsigned)type, rank, dims, strides, box, steps, step), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(interleave || !swizzle || box[0] * type_sizes[type] <= spans[swizzle], CUDA_ERROR_INVALID_VALUE);
    REQUIRE(interleave != 2 || swizzle == 1, CUDA_ERROR_INVALID_VALUE);
    struct tensor_map made = {
        .address = (uintptr_t)address, .type = (uint8_t)type, .rank = (uint8_t)rank, .interleave = (uint8_t)interleave,
        .swizzle = (uint8_t)swizzle, .promotion = (uint8_t)promotion, .fill = (uint8_t)fill,
    };
    for (unsigned i = 0; i < rank; i++) {
        made.dims[i] = dims[i];
        made.box[i] = (uint16_t)box[i];
        made.steps[i] = (uint8_t)steps[i];
        if (i + 1 < rank)
            made.strides[i] = strides[i];
    }
    _Static_assert(sizeof made == 128, "a tensor map has 128 bytes");
    memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}
