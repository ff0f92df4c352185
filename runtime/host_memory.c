/* SPDX-License-Identifier: Apache-2.0
 *
 * The system's free memory, limited by each control group from the process's own up to the root, in
 * version 2 or 1 of Linux's interface:
 *
 *   free = min over the groups (limit - used + pages of files)
 *
 * Cached pages of files count as used by a group but are dropped when memory is needed, so they are
 * added. In version 2 swap has a limit of its own; the limit of version 1 is ignored.
 */
#include "runtime/host_memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/strbuf.h"

enum { PATH_BYTES = 4096 };

struct room {
    uint64_t memory, swap;
};

/* Where a version of control groups is mounted, and the names of its files. */
struct version {
    const char *mount;
    const char *limit, *used, *swap_limit, *swap_used; /* NULL: ignored       */
    const char *active_files, *inactive_files;         /* rows of memory.stat */
};

static const struct version version_2 = {
    "/sys/fs/cgroup",      "memory.max",  "memory.current", "memory.swap.max",
    "memory.swap.current", "active_file", "inactive_file"};
static const struct version version_1 = {
    "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", NULL, NULL,
    "total_active_file",     "total_inactive_file"};

static FILE *
open_below(const char *root, const char *folder, const char *name)
{
    char path[2 * PATH_BYTES];
    int n = snprintf(path, sizeof(path), "%s%s/%s", root, folder, name);
    return n > 0 && (size_t)n < sizeof(path) ? fopen(path, "r") : NULL;
}

/* Reads the number behind `name` in a file of lines "name number …". False: there is no such line;
 * *out is 0. */
static bool
read_row(const char *root, const char *folder, const char *file, const char *name,
         uint64_t *out)
{
    char line[128], word[64];
    bool found = false;
    FILE *f = open_below(root, folder, file);
    *out = 0;
    if (!f)
        return false;
    while (!found && fgets(line, sizeof(line), f))
        found = sscanf(line, "%63s %" SCNu64, word, out) == 2 && strcmp(word, name) == 0;
    if (!found)
        *out = 0;
    fclose(f);
    return found;
}

/* Reads a file of one number or "max" (UINT64_MAX). False: `name` is NULL, or the file cannot be
 * read. */
static bool
read_number(const char *root, const char *folder, const char *name, uint64_t *out)
{
    char word[32];
    FILE *f = name ? open_below(root, folder, name) : NULL;
    if (!f)
        return false;
    bool there = fscanf(f, "%31s", word) == 1;
    fclose(f);
    *out = UINT64_MAX;
    return there && (strcmp(word, "max") == 0 || sscanf(word, "%" SCNu64, out) == 1);
}

static void
narrow(uint64_t *room, uint64_t limit, uint64_t used)
{
    uint64_t left = limit > used ? limit - used : 0;
    if (left < *room)
        *room = left;
}

static void
narrow_to_group(const char *root, const struct version *v, const char *folder,
                struct room *room)
{
    uint64_t limit, used, active, inactive;
    if (read_number(root, folder, v->limit, &limit) &&
        read_number(root, folder, v->used, &used)) {
        read_row(root, folder, "memory.stat", v->active_files, &active);
        read_row(root, folder, "memory.stat", v->inactive_files, &inactive);
        uint64_t files = active + inactive;
        narrow(&room->memory, limit, used > files ? used - files : 0);
    }
    if (read_number(root, folder, v->swap_limit, &limit) &&
        read_number(root, folder, v->swap_used, &used))
        narrow(&room->swap, limit, used);
}

/* Applies the limits of the group `path` and of all groups above it. In a container the path may be
 * one of the host, of which only the end, or nothing, is mounted: folders that do not exist limit
 * nothing. */
static void
narrow_to_groups(const char *root, const struct version *v, char *path, struct room *room)
{
    char folder[PATH_BYTES + 64];
    char *slash = path;
    while (slash) {
        snprintf(folder, sizeof(folder), "%s%s", v->mount, path);
        narrow_to_group(root, v, folder, room);
        slash = strrchr(path, '/');
        if (slash)
            *slash = '\0';
    }
}

/* Applies the limits of the process's groups: /proc/self/cgroup has lines
 * "number:controllers:path", of which "0::path" is version 2. */
static void
narrow_to_own_groups(const char *root, struct room *room)
{
    char line[PATH_BYTES];
    FILE *f = open_below(root, "/proc/self", "cgroup");
    while (f && fgets(line, sizeof(line), f)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(line, "0:") == 0)
            narrow_to_groups(root, &version_2, path, room);
        else if (xm_list_has(controllers + 1, ',', "memory", 6))
            narrow_to_groups(root, &version_1, path, room);
    }
    if (f)
        fclose(f);
}

uint64_t
xm_host_memory_free_below(const char *root)
{
    struct room room;
    if (!read_row(root, "/proc", "meminfo", "MemAvailable:", &room.memory))
        return 0;
    read_row(root, "/proc", "meminfo", "SwapFree:", &room.swap);
    room.memory <<= 10; /* from KiB to bytes */
    room.swap <<= 10;
    narrow_to_own_groups(root, &room);
    uint64_t all = room.memory + room.swap;
    return all ? all : 1; /* 0 would say that nothing is known */
}

uint64_t
xm_host_memory_free(void)
{
    return xm_host_memory_free_below("");
}

uint64_t
xm_host_memory_total_below(const char *root)
{
    uint64_t kib;
    return read_row(root, "/proc", "meminfo", "MemTotal:", &kib) ? kib << 10 : 0;
}

uint64_t
xm_host_memory_total(void)
{
    return xm_host_memory_total_below("");
}
