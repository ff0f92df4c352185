/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the OpenCL devices and their facts, in the order of preference. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/driver_files.h"
#include "runtime/ocl/ocl.h"
#include "runtime/util/log.h"
#include "runtime/util/memory.h"
#include "runtime/util/strbuf.h"

enum {
    MAX_PLATFORMS = 16,
    MAX_DEVICES = XM_MOST_SUB_DEVICES,
    INTEL = 0x8086,
    EXTENSIONS = 16384
};

static struct ocl_device handles[MAX_DEVICES];
static struct xm_device_info infos[MAX_DEVICES];
static size_t n_devices;
static struct xm_error list_error;
static pthread_once_t list_once = PTHREAD_ONCE_INIT;

static void
get_text(cl_device_id d, cl_device_info what, char *out, size_t n)
{
    if (clGetDeviceInfo(d, what, n - 1, out, NULL) != CL_SUCCESS)
        out[0] = 0;
    out[n - 1] = 0;
}

/* Reads a text that may be longer than `out`: keeps its beginning. */
static void
get_long_text(cl_device_id d, cl_device_info what, char *out, size_t n)
{
    char whole[1024] = {0};
    get_text(d, what, whole, sizeof(whole));
    size_t len = strlen(whole);
    if (len > n - 1)
        len = n - 1;
    memcpy(out, whole, len);
    out[len] = 0;
}

static uint32_t
get_u32(cl_device_id d, cl_device_info what)
{
    cl_uint v = 0;
    return clGetDeviceInfo(d, what, sizeof(v), &v, NULL) == CL_SUCCESS ? v : 0;
}

static uint64_t
get_u64(cl_device_id d, cl_device_info what)
{
    cl_ulong v = 0;
    return clGetDeviceInfo(d, what, sizeof(v), &v, NULL) == CL_SUCCESS ? v : 0;
}

static bool
has_word(const char *words, const char *word)
{
    return xm_list_has(words, ' ', word, strlen(word));
}

/* Whether `words` contains one of the words in `any`; NULL: no. */
static bool
has_any_word(const char *words, const char *any)
{
    for (size_t n; any && *any; any += n + (any[n] == ' ')) {
        n = strcspn(any, " ");
        if (xm_list_has(words, ' ', any, n))
            return true;
    }
    return false;
}

/* The capabilities that the host's processor gives a CPU device. */
static uint32_t
processor_caps(void)
{
    uint32_t caps = 0;
#define CAP(id, text, processor, extensions) caps |= (processor) ? XM_CAP_##id : 0u;
#include "runtime/capabilities.def"
    return caps;
}

/* clang-format off */
static const struct { const char *extensions; uint32_t caps; } extension_caps[] = {
#define CAP(id, text, processor, extensions) {extensions, XM_CAP_##id},
#include "runtime/capabilities.def"
};
static const struct { cl_device_info what; uint32_t caps; } usm_caps[] = {
    {CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL,                 XM_CAP_USM_HOST},
    {CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,               XM_CAP_USM_DEVICE},
    {CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, XM_CAP_USM_SHARED},
};
/* clang-format on */

static uint32_t
extension_bits(cl_device_id d, const char *extensions)
{
    uint32_t caps = 0;
    for (size_t i = 0; i < XM_ARRAY_LEN(extension_caps); i++)
        if (has_any_word(extensions, extension_caps[i].extensions))
            caps |= extension_caps[i].caps;
    if (has_word(extensions, "cl_intel_unified_shared_memory") ||
        has_word(extensions, "cl_intel_unified_shared_memory_preview"))
        for (size_t i = 0; i < XM_ARRAY_LEN(usm_caps); i++)
            if (get_u64(d, usm_caps[i].what) & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL)
                caps |= usm_caps[i].caps;
    return caps;
}

/* Reads UUID, LUID and PCI address, by which other programs identify the device and Level Zero
 * finds it. */
static void
probe_identity(cl_device_id d, const char *extensions, struct xm_device_info *info)
{
    cl_bool luid_is_valid = CL_FALSE;
    cl_device_pci_bus_info_khr pci = {0};
    if (has_word(extensions, "cl_khr_device_uuid")) {
        info->has_uuid = clGetDeviceInfo(d, CL_DEVICE_UUID_KHR, sizeof(info->uuid),
                                         info->uuid, NULL) == CL_SUCCESS;
        info->has_luid =
            clGetDeviceInfo(d, CL_DEVICE_LUID_VALID_KHR, sizeof(luid_is_valid),
                            &luid_is_valid, NULL) == CL_SUCCESS &&
            luid_is_valid &&
            clGetDeviceInfo(d, CL_DEVICE_LUID_KHR, sizeof(info->luid), info->luid,
                            NULL) == CL_SUCCESS;
    }
    if (has_word(extensions, "cl_khr_pci_bus_info") &&
        clGetDeviceInfo(d, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof(pci), &pci, NULL) ==
            CL_SUCCESS) {
        info->has_pci = true;
        info->pci = (struct xm_pci){pci.pci_domain, pci.pci_bus, pci.pci_device,
                                    pci.pci_function};
    }
}

/* Reads device id, IP version and feature flags of an Intel GPU (bit 0: DP4A, bit 1: DPAS).
 * devices.def corrects chips that claim too much. */
static void
probe_intel(cl_device_id d, const char *extensions, struct xm_device_info *info)
{
    if (!has_word(extensions, "cl_intel_device_attribute_query"))
        return;
    info->device_id = get_u32(d, CL_DEVICE_ID_INTEL);
    info->slices = get_u32(d, CL_DEVICE_NUM_SLICES_INTEL);
    info->sub_slices = get_u32(d, CL_DEVICE_NUM_SUB_SLICES_PER_SLICE_INTEL);
    info->eus = get_u32(d, CL_DEVICE_NUM_EUS_PER_SUB_SLICE_INTEL);
    info->threads = get_u32(d, CL_DEVICE_NUM_THREADS_PER_EU_INTEL);
    xm_device_set_ip_version(info, get_u32(d, CL_DEVICE_IP_VERSION_INTEL));
    uint64_t features = get_u64(d, CL_DEVICE_FEATURE_CAPABILITIES_INTEL);
    if (features & CL_DEVICE_FEATURE_FLAG_DP4A_INTEL)
        info->caps |= XM_CAP_DP4A;
    if (features & CL_DEVICE_FEATURE_FLAG_DPAS_INTEL)
        info->caps |= XM_CAP_DPAS;
}

/* Reads the sub-group sizes among 8, 16, 32 and 64: kernels use no others. */
static void
probe_sub_groups(cl_device_id d, struct xm_device_info *info)
{
    size_t sizes[32], n_bytes = 0, n = 0;
    if (clGetDeviceInfo(d, CL_DEVICE_SUB_GROUP_SIZES_INTEL, sizeof(sizes), sizes,
                        &n_bytes) != CL_SUCCESS)
        return;
    for (size_t want = 8; want <= 64; want *= 2)
        for (size_t i = 0; i < n_bytes / sizeof(sizes[0]); i++)
            if (sizes[i] == want)
                info->sub_group_sizes[n++] = (uint32_t)want;
}

/* Chooses the newest OpenCL C that the compiler accepts, of 3.0, 2.0 and 1.2. */
static void
probe_language(cl_device_id d, struct xm_device_info *info)
{
    cl_name_version versions[16];
    size_t n_bytes = 0;
    const char *best = strncmp(info->version, "OpenCL 2", 8) == 0 ? "CL2.0" : "CL1.2";
    if (strncmp(info->version, "OpenCL 3", 8) == 0 &&
        clGetDeviceInfo(d, CL_DEVICE_OPENCL_C_ALL_VERSIONS, sizeof(versions), versions,
                        &n_bytes) == CL_SUCCESS)
        for (size_t i = 0; i < n_bytes / sizeof(versions[0]); i++)
            if (CL_VERSION_MAJOR(versions[i].version) == 3)
                best = "CL3.0";
    memcpy(info->cl_std, best, strlen(best) + 1);
}

static void
probe_sizes(cl_device_id d, struct xm_device_info *info)
{
    size_t group = 0;
    clGetDeviceInfo(d, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(group), &group, NULL);
    info->max_work_group = group;
    info->compute_units = get_u32(d, CL_DEVICE_MAX_COMPUTE_UNITS);
    info->clock_mhz = get_u32(d, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    info->local_bytes = get_u64(d, CL_DEVICE_LOCAL_MEM_SIZE);
    info->global_bytes = get_u64(d, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->max_alloc_bytes = get_u64(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->cache_bytes = get_u64(d, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    info->base_align = get_u32(d, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    info->cacheline_bytes = get_u32(d, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
}

static void
probe_kind(cl_device_id d, struct xm_device_info *info)
{
    cl_device_type type = get_u64(d, CL_DEVICE_TYPE);
    cl_device_exec_capabilities exec = get_u64(d, CL_DEVICE_EXECUTION_CAPABILITIES);
    info->kind = type & CL_DEVICE_TYPE_GPU   ? XM_DEVICE_GPU
                 : type & CL_DEVICE_TYPE_CPU ? XM_DEVICE_CPU
                                             : XM_DEVICE_OTHER;
    if (exec & CL_EXEC_NATIVE_KERNEL)
        info->caps |= XM_CAP_NATIVE_KERNEL;
    if (get_u32(d, CL_DEVICE_HOST_UNIFIED_MEMORY))
        info->caps |= XM_CAP_UNIFIED;
    if (info->kind == XM_DEVICE_CPU)
        info->caps |= processor_caps();
    info->integrated = info->kind == XM_DEVICE_GPU && (info->caps & XM_CAP_UNIFIED);
    if (info->kind == XM_DEVICE_GPU) /* for CPU devices the driver has its own cache */
        info->caps |= XM_CAP_BINARIES;
}

static void
probe_device(cl_platform_id platform, cl_device_id d, struct xm_device_info *info)
{
    char extensions[EXTENSIONS] = {0};
    get_text(d, CL_DEVICE_EXTENSIONS, extensions, sizeof(extensions));
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(info->platform) - 1,
                      info->platform, NULL);
    get_long_text(d, CL_DEVICE_NAME, info->name, sizeof(info->name));
    get_long_text(d, CL_DEVICE_VENDOR, info->vendor, sizeof(info->vendor));
    get_long_text(d, CL_DRIVER_VERSION, info->driver, sizeof(info->driver));
    get_long_text(d, CL_DEVICE_VERSION, info->version, sizeof(info->version));
    info->vendor_id = get_u32(d, CL_DEVICE_VENDOR_ID);
    probe_kind(d, info);
    info->caps |= extension_bits(d, extensions);
    probe_sizes(d, info);
    probe_language(d, info);
    if (info->caps & XM_CAP_REQD_SG_SIZE)
        probe_sub_groups(d, info);
    probe_identity(d, extensions, info);
    if (info->kind == XM_DEVICE_GPU && info->vendor_id == INTEL)
        probe_intel(d, extensions, info);
    xm_device_apply_tables(info);
}

static void
add_device(cl_platform_id platform, cl_device_id d)
{
    if (n_devices == MAX_DEVICES)
        return;
    handles[n_devices].platform = platform;
    handles[n_devices].device = d;
    probe_device(platform, d, &infos[n_devices]);
    n_devices++;
}

/* Adds a CPU device; with XM_SUB_DEVICES=N as N devices, each with a share of the compute units.
 * The compute units are the system's cores in order; if this process may use all of them, each
 * sub-device gets its cores. With fewer units than N, or if the driver cannot divide the device,
 * the same device is added N times. Sub-devices live as long as the process. */
static void
add_processor(cl_platform_id platform, cl_device_id d)
{
    uint32_t wanted;
    if (xm_sub_devices(&wanted, &list_error) != XM_OK)
        return;
    cl_device_partition_property parts[MAX_DEVICES + 3] = {CL_DEVICE_PARTITION_BY_COUNTS};
    cl_device_id list[MAX_DEVICES];
    const uint64_t units = get_u32(d, CL_DEVICE_MAX_COMPUTE_UNITS);
    cl_uint n = wanted;
    for (uint64_t i = 0; i < wanted; i++)
        parts[1 + i] =
            (cl_device_partition_property)(units * (i + 1) / wanted - units * i / wanted);
    const bool is_cut = wanted > 1 && units >= wanted &&
                        clCreateSubDevices(d, parts, n, list, &n) == CL_SUCCESS;
    const bool has_cores =
        is_cut && xm_cores_are_ours((struct xm_cores){0, (uint32_t)units});
    for (uint64_t i = 0; i < wanted && n_devices < MAX_DEVICES; i++) {
        add_device(platform, is_cut ? list[i] : d);
        if (has_cores)
            infos[n_devices - 1].cores =
                (struct xm_cores){(uint32_t)(units * i / wanted), (uint32_t)parts[1 + i]};
    }
}

static void
probe_platform(cl_platform_id platform)
{
    cl_device_id devices[MAX_DEVICES];
    cl_uint n = 0;
    cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &n);
    if (code != CL_SUCCESS)
        return; /* a platform without devices is ordinary */
    for (cl_uint i = 0; i < n && i < MAX_DEVICES && n_devices < MAX_DEVICES; i++) {
        cl_bool available = CL_FALSE;
        clGetDeviceInfo(devices[i], CL_DEVICE_AVAILABLE, sizeof(available), &available,
                        NULL);
        if (!available || !get_u32(devices[i], CL_DEVICE_COMPILER_AVAILABLE))
            continue;
        if (get_u64(devices[i], CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU)
            add_processor(platform, devices[i]);
        else
            add_device(platform, devices[i]);
    }
}

/* Lower is better: Intel GPUs, other GPUs, CPU devices, others. */
static int
preference(const struct xm_device_info *info)
{
    if (info->kind == XM_DEVICE_GPU)
        return info->vendor_id == INTEL ? 0 : 1;
    return info->kind == XM_DEVICE_CPU ? 2 : 3;
}

/* A stable insertion sort, because drivers list their best device first. */
static void
sort_devices(void)
{
    for (size_t i = 1; i < n_devices; i++) {
        for (size_t j = i; j > 0 && preference(&infos[j]) < preference(&infos[j - 1]);
             j--) {
            struct xm_device_info info = infos[j];
            struct ocl_device handle = handles[j];
            infos[j] = infos[j - 1];
            handles[j] = handles[j - 1];
            infos[j - 1] = info;
            handles[j - 1] = handle;
        }
    }
}

static void
probe_platforms(void)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n = 0;
    if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &n) != CL_SUCCESS)
        return; /* no platform is installed: the loader reports that as an error */
    for (cl_uint i = 0; i < n && i < MAX_PLATFORMS; i++)
        probe_platform(platforms[i]);
}

static void
list_devices(void)
{
    struct ocl_signals signals;
    xm_driver_files_open();
    if (xm_env("XM_SUB_DEVICES")) /* PoCL then binds each of its threads to a core */
        setenv("POCL_AFFINITY", "1", 0);
    xm_ocl_keep_signals(&signals);
    probe_platforms();
    xm_ocl_restore_signals(&signals);
    sort_devices();
    const char *as = xm_env("XM_DEVICE_AS");
    for (size_t i = 0; as && i < n_devices; i++)
        if (xm_device_pretend(&infos[i], as, &list_error) != XM_OK) {
            xm_error_prefix(&list_error, "XM_DEVICE_AS");
            return;
        }
}

enum xm_status
xm_ocl_list(const struct xm_device_info **out, size_t *n, struct xm_error *err)
{
    pthread_once(&list_once, list_devices);
    *out = infos;
    *n = n_devices;
    if (list_error.status != XM_OK)
        return xm_fail(err, list_error.status, "%s", list_error.text);
    return XM_OK;
}

const struct ocl_device *
xm_ocl_device_at(size_t index)
{
    return &handles[index];
}
