/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "runtime/collective_mpi.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/mpi/mpi_module.h"
#include "runtime/util/log.h"
#include "runtime/util/number.h"
#include "runtime/util/strbuf.h"
#include "runtime/util/unfinished.h"

/* The module of MPI. It is opened once and never closed, because MPI's libraries do not survive
 * that. */
static struct {
    pthread_once_t once;
    const struct xm_mpi_module *module; /* NULL: see err */
    struct xm_error err;
} mpi = {.once = PTHREAD_ONCE_INIT};

/* Environment variables of Open MPI; of MPICH and Intel MPI; of MVAPICH. */
static const struct {
    const char *size, *rank, *local_rank;
} names[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK"}};

uint32_t
xm_mpi_local_rank(void)
{
    uint64_t own;
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        const char *text = xm_env(names[i].local_rank);
        if (text && xm_parse_whole(text, &own) && own < UINT32_MAX)
            return (uint32_t)own;
    }
    return 0;
}

uint32_t
xm_mpi_ranks(uint32_t *rank)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(names); i++) {
        const char *n_text = xm_env(names[i].size), *text = xm_env(names[i].rank);
        uint64_t n = 0, own = 0;
        if (!n_text || !text || !xm_parse_whole(n_text, &n) ||
            !xm_parse_whole(text, &own) || n > UINT32_MAX || own >= n)
            continue;
        *rank = (uint32_t)own;
        return (uint32_t)n;
    }
    *rank = 0;
    return 1;
}

/* Finds the path of the library or program that contains this function. The program's own name
 * (argv[0]) may have no folder, or be a link. out: "" if it cannot be found. */
static void
find_own_file(char out[PATH_MAX])
{
    Dl_info own;
    char program[PATH_MAX] = "", *name = NULL;
    out[0] = '\0';
    if (dladdr(&mpi, &own) && strstr(own.dli_fname, ".so"))
        name = realpath(own.dli_fname, out);
    if (!name && readlink("/proc/self/exe", program, sizeof(program) - 1) > 0)
        memcpy(out, program, sizeof(program));
}

/* Opens the module beside that file, or where an installation has it relative to bin/, lib/ or
 * libexec/xemoe/; else by its name alone. */
static void *
open_library(void)
{
    static const char *const places[] = {"", "xemoe/", "../" XM_LIBDIR "/xemoe/",
                                         "../../" XM_LIBDIR "/xemoe/"};
    char own[PATH_MAX];
    struct xm_strbuf path = {0};
    void *library = NULL;
    find_own_file(own);
    const char *slash = strrchr(own, '/');
    for (size_t i = 0; i < XM_ARRAY_LEN(places) && slash && !library; i++) {
        xm_strbuf_clear(&path);
        xm_strbuf_printf(&path, "%.*s/%s%s", (int)(slash - own), own, places[i],
                         XM_MPI_MODULE);
        if (xm_strbuf_ok(&path) && access(path.text, R_OK) == 0)
            library = dlopen(path.text, RTLD_NOW | RTLD_GLOBAL);
    }
    xm_strbuf_free(&path);
    return library ? library : dlopen(XM_MPI_MODULE, RTLD_NOW | RTLD_GLOBAL);
}

static void
open_module(void)
{
    void *library = open_library();
    const struct xm_mpi_module *m = library ? dlsym(library, XM_MPI_MODULE_SYMBOL) : NULL;
    if (!m)
        xm_fail(&mpi.err, XM_UNSUPPORTED,
                "a job of several processes needs xemoe's MPI module, which is built if "
                "an MPI library is installed: %s",
                dlerror());
    else if (strcmp(m->version, XM_VERSION) != 0)
        xm_fail(&mpi.err, XM_UNSUPPORTED, "%s belongs to xemoe %s, but this is xemoe %s",
                XM_MPI_MODULE, m->version, XM_VERSION);
    else
        mpi.module = m;
}

/* Another process is lost, and this one ends. */
static void
say_lost(const char *sentence)
{
    xm_log(XM_LOG_ERROR, "%s", sentence);
    xm_unfinished_remove();
}

enum xm_status
xm_mpi_create(const bool *members, struct xm_collective **out, struct xm_error *err)
{
    pthread_once(&mpi.once, open_module);
    return mpi.module ? mpi.module->create(members, say_lost, out, err)
                      : xm_fail(err, mpi.err.status, "%s", mpi.err.text);
}

void
xm_mpi_free(struct xm_collective *c)
{
    if (c)
        mpi.module->free(c);
}

void
xm_mpi_end(int exit_code)
{
    if (mpi.module)
        mpi.module->end(exit_code);
}
