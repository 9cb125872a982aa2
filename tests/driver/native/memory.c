/* Device memory: memory of the host under addresses that no host pointer has, so that a mix-up shows. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

enum { LOCATION_DEVICE = 1, KIND_HOST = 1, KIND_DEVICE = 2, FILLED_MOST = 1 << 20, NAME_MOST = 256 };

/* Addresses of device memory start here; an allocation never spans two of these steps. */
#define FIRST_ADDRESS (1ull << 50)
#define ADDRESS_STEP (1ull << 40)

struct block {
    struct block *next;
    CUdeviceptr address; /* of pinned memory that of the host */
    char *host;
    size_t bytes;
    bool pinned, owned;
    CUdevice device;
    CUmemoryPool pool;
    const struct code *code; /* of a module's variable */
    char name[NAME_MOST];
};

static struct block *blocks;
static uint64_t numbered;

static struct block *block_of(CUdeviceptr address, size_t bytes) {
    for (struct block *each = blocks; each; each = each->next)
        if (address >= each->address && bytes <= each->bytes && address - each->address <= each->bytes - bytes)
            return each;
    return NULL;
}

void *memory_host(CUdeviceptr address, size_t bytes) {
    struct block *block = block_of(address, bytes);
    return block ? block->host + (address - block->address) : NULL;
}

unsigned memory_count(bool device) {
    unsigned count = 0;
    for (const struct block *each = blocks; each; each = each->next)
        count += !each->code && each->pinned != device;
    return count;
}

static size_t bytes_used(CUdevice device) {
    size_t sum = 0;
    for (const struct block *each = blocks; each; each = each->next)
        if (!each->pinned && each->device == device)
            sum += each->bytes;
    return sum;
}

static struct block *add_block(CUdevice device, size_t bytes) {
    struct block *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->device = device;
    made->bytes = bytes;
    made->next = blocks;
    blocks = made;
    return made;
}

static void drop_block(struct block *block) {
    for (struct block **at = &blocks; *at; at = &(*at)->next)
        if (*at == block) {
            *at = block->next;
            break;
        }
    if (block->owned)
        free(block->host);
    else if (!block->code && standin_current_engine.release)
        standin_current_engine.release(block->address);
    free(block);
}

/* Memory where the engine puts it, or else where malloc does; full of 0xcc, as a GPU's is of what was there before. */
static CUresult place(struct block *block) {
    if (standin_current_engine.allocate) {
        uint64_t host = 0;
        int status = standin_current_engine.allocate(block->bytes, &block->address, &host);
        block->host = (char *)(uintptr_t)host;
        if (status)
            return status;
    } else {
        block->owned = true;
        block->host = malloc(block->bytes);
        block->address = FIRST_ADDRESS + ADDRESS_STEP * numbered++;
    }
    REQUIRE(block->host, CUDA_ERROR_OUT_OF_MEMORY);
    memset(block->host, 0xcc, block->bytes < FILLED_MOST ? block->bytes : FILLED_MOST);
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, CUdevice device, CUmemoryPool pool) {
    REQUIRE(address && bytes > 0, CUDA_ERROR_INVALID_VALUE);
    uint64_t most = device_model(device)->memory, used = bytes_used(device);
    REQUIRE(bytes < ADDRESS_STEP && bytes <= most && used <= most - bytes, CUDA_ERROR_OUT_OF_MEMORY);
    struct block *block = add_block(device, bytes);
    REQUIRE(block, CUDA_ERROR_OUT_OF_MEMORY);
    block->pool = pool;
    CUresult status = place(block);
    if (status) {
        block->owned = true; /* nothing of the engine's to release */
        drop_block(block);
        return status;
    }
    *address = block->address;
    return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr address, bool pinned) {
    struct block *block = block_of(address, 0);
    REQUIRE(block && block->address == address && block->pinned == pinned && !block->code, CUDA_ERROR_INVALID_VALUE);
    drop_block(block);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *spare, size_t *total) {
    BEGIN;
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    CUdevice device = current_context()->device;
    *total = device_model(device)->memory;
    *spare = *total - bytes_used(device);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    BEGIN;
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    return allocate(address, bytes, current_context()->device, NULL);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
    BEGIN;
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    return release(address, false);
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr address) {
    BEGIN;
    struct block *block = block_of(address, 1);
    REQUIRE(block, CUDA_ERROR_NOT_FOUND);
    if (start)
        *start = block->address;
    if (bytes)
        *bytes = block->bytes;
    return CUDA_SUCCESS;
}

/* --- memory of the host that the device knows ------------------------------------------------------------------- */

static CUresult allocate_pinned(void **host, size_t bytes) {
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(host && bytes > 0, CUDA_ERROR_INVALID_VALUE);
    struct block *block = add_block(current_context()->device, bytes);
    REQUIRE(block, CUDA_ERROR_OUT_OF_MEMORY);
    block->pinned = block->owned = true;
    block->host = malloc(bytes);
    block->address = (uintptr_t)block->host;
    if (!block->host) {
        drop_block(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *host = block->host;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocHost_v2(void **host, size_t bytes) {
    BEGIN;
    return allocate_pinned(host, bytes);
}

EXPORT CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned flags) {
    BEGIN;
    REQUIRE(flags < 8, CUDA_ERROR_INVALID_VALUE);
    return allocate_pinned(host, bytes);
}

EXPORT CUresult cuMemFreeHost(void *host) {
    BEGIN;
    return release((uintptr_t)host, true);
}

/* --- copies and sets -------------------------------------------------------------------------------------------- */

/* Where bytes at a unified address lie: a range of one allocation, or the host's own memory; NULL for neither. */
static void *unified(CUdeviceptr address, size_t bytes) {
    void *known = memory_host(address, bytes);
    return known || address >= FIRST_ADDRESS ? known : (void *)(uintptr_t)address;
}

static CUresult copy(void *to, const void *from, size_t bytes) {
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    if (bytes == 0)
        return CUDA_SUCCESS;
    REQUIRE(to && from, CUDA_ERROR_INVALID_VALUE);
    if (standin_is_hung())
        standin_never("a copy");
    memmove(to, from, bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    BEGIN;
    return copy(memory_host(to, bytes), from, bytes);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    BEGIN;
    return copy(to, memory_host(from, bytes), bytes);
}

EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    BEGIN;
    return copy(memory_host(to, bytes), memory_host(from, bytes), bytes);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return copy(memory_host(to, bytes), from, bytes);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return copy(to, memory_host(from, bytes), bytes);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return copy(memory_host(to, bytes), memory_host(from, bytes), bytes);
}

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    BEGIN;
    return copy(unified(to, bytes), unified(from, bytes), bytes);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return copy(unified(to, bytes), unified(from, bytes), bytes);
}

static CUresult fill(CUdeviceptr to, unsigned value, size_t width, size_t count) {
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    char *host = memory_host(to, count * width);
    REQUIRE(host && to % width == 0, CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        memcpy(host + i * width, &value, width); /* little-endian */
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    BEGIN;
    return fill(to, value, 1, count);
}

EXPORT CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    BEGIN;
    return fill(to, value, 2, count);
}

EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
    BEGIN;
    return fill(to, value, 4, count);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return fill(to, value, 1, count);
}

EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return fill(to, value, 2, count);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return fill(to, value, 4, count);
}

/* --- pools and allocation in a stream's order -------------------------------------------------------------------- */

static CUmemoryPool default_pools[16];

/* The pool of a device that is there from the start; its memory comes and goes with each allocation. */
static CUresult default_pool(CUmemoryPool *pool, CUdevice device) {
    static struct pool kept[16];
    REQUIRE(device_model(device), CUDA_ERROR_INVALID_DEVICE);
    kept[device].device = device;
    default_pools[device] = &kept[device];
    *pool = &kept[device];
    return CUDA_SUCCESS;
}

static bool pool_is_known(CUmemoryPool pool) {
    for (size_t i = 0; i < sizeof default_pools / sizeof *default_pools; i++)
        if (pool && default_pools[i] == pool)
            return true;
    return object_is(pool, POOL);
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    BEGIN;
    return default_pool(pool, device);
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    BEGIN;
    return default_pool(pool, device);
}

struct pool_properties {
    int allocation, handles, location, device;
    void *windows;
    size_t most;
    unsigned short usage;
    char reserved[54];
};

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const struct pool_properties *properties) {
    BEGIN;
    REQUIRE(pool && properties && properties->location == LOCATION_DEVICE, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_model(properties->device), CUDA_ERROR_INVALID_DEVICE);
    CUmemoryPool made = object_new(POOL, sizeof *made);
    REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->device = properties->device;
    *pool = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    BEGIN;
    REQUIRE(object_is(pool, POOL), CUDA_ERROR_INVALID_VALUE);
    object_free(pool);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    BEGIN;
    (void)keep;
    REQUIRE(pool_is_known(pool), CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

enum { POOL_THRESHOLD = 4, POOL_RESERVED, POOL_RESERVED_HIGH, POOL_USED, POOL_USED_HIGH };

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
    BEGIN;
    REQUIRE(pool_is_known(pool) && attribute > 0 && attribute <= POOL_USED_HIGH, CUDA_ERROR_INVALID_VALUE);
    if (attribute == POOL_THRESHOLD)
        pool->threshold = *(uint64_t *)value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
    BEGIN;
    REQUIRE(pool_is_known(pool) && attribute > 0 && attribute <= POOL_USED_HIGH, CUDA_ERROR_INVALID_VALUE);
    if (attribute < POOL_THRESHOLD) {
        *(int *)value = 1;
        return CUDA_SUCCESS;
    }
    uint64_t used = 0;
    for (const struct block *each = blocks; each; each = each->next)
        used += each->pool == pool ? each->bytes : 0;
    *(uint64_t *)value = attribute == POOL_THRESHOLD ? pool->threshold : used;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
    BEGIN;
    REQUIRE(pool_is_known(pool), CUDA_ERROR_INVALID_VALUE);
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return allocate(address, bytes, pool->device, pool);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    BEGIN;
    REQUIRE(current_context(), CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    CUmemoryPool pool;
    CUresult status = default_pool(&pool, current_context()->device);
    return status ? status : allocate(address, bytes, pool->device, pool);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    BEGIN;
    REQUIRE(stream_is_known(stream), CUDA_ERROR_INVALID_HANDLE);
    return release(address, false);
}

/* --- what an address is ----------------------------------------------------------------------------------------- */

static CUresult pointer_attribute(void *value, int attribute, CUdeviceptr address, const struct block *block) {
    switch (attribute) {
    case 1:
        *(CUcontext *)value = block ? primary_context(block->device) : NULL;
        return CUDA_SUCCESS;
    case 2:
        *(unsigned *)value = !block ? 0 : block->pinned ? KIND_HOST : KIND_DEVICE;
        return CUDA_SUCCESS;
    case 3:
        *(CUdeviceptr *)value = block ? address : 0;
        return CUDA_SUCCESS;
    case 4:
        *(uint64_t *)value = block && block->pinned ? address : 0;
        return CUDA_SUCCESS;
    case 8:
        *(int *)value = 0;
        return CUDA_SUCCESS;
    case 9:
        *(int *)value = block ? block->device : -2;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

EXPORT CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address) {
    BEGIN;
    const struct block *block = block_of(address, 1);
    REQUIRE(block, CUDA_ERROR_INVALID_VALUE);
    return pointer_attribute(value, attribute, address, block);
}

EXPORT CUresult cuPointerGetAttributes(unsigned count, const int *attributes, void **values, CUdeviceptr address) {
    BEGIN;
    const struct block *block = block_of(address, 1);
    CUresult status = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && !status; i++)
        status = pointer_attribute(values[i], attributes[i], address, block);
    return status;
}

/* --- variables of modules --------------------------------------------------------------------------------------- */

CUresult memory_add_global(struct code *code, const char *name, uint64_t address, uint64_t host, uint64_t bytes) {
    struct block *block = add_block(code->device, bytes);
    REQUIRE(block, CUDA_ERROR_OUT_OF_MEMORY);
    block->code = code;
    block->address = address;
    block->host = (char *)(uintptr_t)host;
    strncpy(block->name, name, sizeof block->name - 1);
    return CUDA_SUCCESS;
}

CUresult memory_find_global(const struct code *code, const char *name, CUdeviceptr *address, size_t *bytes) {
    for (const struct block *each = blocks; each; each = each->next)
        if (each->code == code && !strcmp(each->name, name)) {
            if (address)
                *address = each->address;
            if (bytes)
                *bytes = each->bytes;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

void memory_drop_globals(const struct code *code) {
    for (struct block *each = blocks, *next; each; each = next) {
        next = each->next;
        if (each->code == code)
            drop_block(each);
    }
}
