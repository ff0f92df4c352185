/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device_info.h"

#include <stdio.h>
#include <string.h>

#include "runtime/util/compiler.h"
#include "runtime/util/element.h"
#include "runtime/util/log.h"
#include "runtime/util/number.h"

enum { INTEL = 0x8086 };

/* Short names for the columns of the .def files. */
enum {
    UNIFIED = XM_CAP_UNIFIED,
    DPAS = XM_CAP_DPAS,
    DP4A = XM_CAP_DP4A,
    CACHE = XM_CAP_SEPARATE_CACHE,
    BINARIES = XM_CAP_BINARIES,
    SLOW_BUILTINS = XM_CAP_SLOW_BUILTINS,
    DRIVER_FILES = XM_CAP_DRIVER_FILES
};

static const struct xm_device_row rows[] = {
#define SG(a, b, c)                                                                      \
    {                                                                                    \
        a, b, c, 0                                                                       \
    }
#define DEVICE(name, text, major, minor0, minor1, rev0, rev1, arch, integrated, set,     \
               clear, sizes)                                                             \
    {name, text,           major,      minor0, minor1, rev0,                             \
     rev1, XM_ARCH_##arch, integrated, set,    clear,  sizes},
#include "runtime/devices.def"
#undef SG
};

static const struct xm_card_row cards[] = {
#define CARD(name, chip, text, eus, mhz, gb_s, gib)                                      \
    {name, chip, text, eus, mhz, 1e9 * (gb_s), (uint64_t)(gib) << 30},
#include "runtime/cards.def"
};

struct quirk {
    const char *name, *platform, *driver;
    enum xm_arch first, last;
    uint32_t set, clear;
    const char *cl_std;
    const char *why;
};

static const struct quirk quirks[] = {
#define QUIRK(name, platform, driver, first, last, set, clear, cl_std, why)              \
    {name, platform, driver, XM_ARCH_##first, XM_ARCH_##last, set, clear, cl_std, why},
#include "runtime/quirks.def"
};

const char *
xm_arch_text(enum xm_arch arch)
{
    static const char *const text[] = {
        [XM_ARCH_UNKNOWN] = "unknown", [XM_ARCH_GEN9] = "gen9",
        [XM_ARCH_GEN11] = "gen11",     [XM_ARCH_XE_LP] = "xe_lp",
        [XM_ARCH_XE_HP] = "xe_hp",     [XM_ARCH_XE_HPG] = "xe_hpg",
        [XM_ARCH_XE_HPC] = "xe_hpc",   [XM_ARCH_XE2] = "xe2",
        [XM_ARCH_XE3] = "xe3",
    };
    return (size_t)arch < XM_ARRAY_LEN(text) ? text[arch] : "unknown";
}

void
xm_caps_text(uint32_t caps, char *out, size_t out_bytes)
{
    static const char *const names[] = {
#define CAP(id, text, processor, extensions) text,
#include "runtime/capabilities.def"
    };
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < XM_ARRAY_LEN(names) && used < out_bytes; i++) {
        if (!(caps & 1u << i))
            continue;
        int n =
            snprintf(out + used, out_bytes - used, "%s%s", used ? ", " : "", names[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* Older drivers number the 12.x chips by generation: translates their minor version to the one of
 * devices.def. */
static void
translate_old_minor(struct xm_device_info *d)
{
    /* clang-format off */
    static const struct { uint32_t minor, revision_first, minor_now; } old[] = {
        {0, 1, 10},  /* DG1  */
        {5, 0, 50},  /* XeHP */
        {7, 0, 55},  /* DG2  */
        {8, 0, 60},  /* PVC  */
    };
    /* clang-format on */
    for (size_t i = 0; i < XM_ARRAY_LEN(old); i++) {
        if (d->ip_major == 12 && d->ip_minor == old[i].minor &&
            d->ip_revision >= old[i].revision_first) {
            d->ip_minor = old[i].minor_now;
            return;
        }
    }
}

void
xm_device_set_ip_version(struct xm_device_info *d, uint32_t packed)
{
    uint32_t architecture = packed >> 22;
    if (architecture > 0 && architecture < 100) {
        d->ip_major = architecture;
        d->ip_minor = packed >> 14 & 0xff;
        d->ip_revision = packed & 0x3f;
        return;
    }
    d->ip_major = packed >> 16;
    d->ip_minor = packed >> 8 & 0xff;
    d->ip_revision = packed & 0xff;
    translate_old_minor(d);
}

static bool
row_fits(const struct xm_device_row *r, const struct xm_device_info *d)
{
    return d->ip_major == r->major && d->ip_minor >= r->minor_first &&
           d->ip_minor <= r->minor_last && d->ip_revision >= r->revision_first &&
           d->ip_revision <= r->revision_last;
}

static void
apply_row(const struct xm_device_row *r, struct xm_device_info *d)
{
    d->arch = r->arch;
    d->integrated = r->integrated;
    d->caps = (d->caps | r->set) & ~r->clear;
    if (!d->sub_group_sizes[0])
        memcpy(d->sub_group_sizes, r->sub_group_sizes, sizeof(d->sub_group_sizes));
}

/* Guesses the architecture of a chip without a row; capabilities stay as the driver reports them.
 * From Xe2 on each architecture has its own major versions, so the chip belongs to the architecture
 * of the nearest older row. Versions 12.x belong to several architectures: the architecture stays
 * unknown. */
static void
guess_arch(struct xm_device_info *d)
{
    d->facts_guessed = true;
    d->arch = XM_ARCH_UNKNOWN;
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        const struct xm_device_row *r = &rows[i];
        const bool is_before = r->major < d->ip_major ||
                               (r->major == d->ip_major && r->minor_last < d->ip_minor);
        if (is_before && r->arch >= XM_ARCH_XE2)
            d->arch = r->arch;
    }
    if (!d->integrated)
        d->caps |= XM_CAP_SEPARATE_CACHE;
}

static void
apply_quirks(struct xm_device_info *d)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(quirks); i++) {
        const struct quirk *q = &quirks[i];
        if (d->arch < q->first || d->arch > q->last ||
            (q->platform && strcmp(q->platform, d->platform) != 0) ||
            (q->driver && strncmp(d->driver, q->driver, strlen(q->driver)) != 0))
            continue;
        d->caps = (d->caps | q->set) & ~q->clear;
        if (q->cl_std)
            snprintf(d->cl_std, sizeof(d->cl_std), "%s", q->cl_std);
    }
}

void
xm_device_apply_tables(struct xm_device_info *d)
{
    if (d->kind == XM_DEVICE_GPU && d->vendor_id == INTEL) {
        size_t i = 0;
        while (i < XM_ARRAY_LEN(rows) && !row_fits(&rows[i], d))
            i++;
        if (i < XM_ARRAY_LEN(rows))
            apply_row(&rows[i], d);
        else
            guess_arch(d);
    }
    apply_quirks(d);
}

static bool
has_size(const uint32_t sizes[4], uint32_t size)
{
    for (int i = 0; i < 4; i++)
        if (sizes[i] == size)
            return true;
    return false;
}

/* Keeps those of the chip's sub-group sizes that the real device can run, too. */
static void
pretend_sub_groups(struct xm_device_info *d, const struct xm_device_row *r)
{
    uint32_t both[4] = {0};
    size_t n = 0;
    for (int i = 0; i < 4; i++)
        if (r->sub_group_sizes[i] && has_size(d->sub_group_sizes, r->sub_group_sizes[i]))
            both[n++] = r->sub_group_sizes[i];
    memcpy(d->sub_group_sizes, both, sizeof(both));
}

enum xm_status
xm_device_pretend(struct xm_device_info *d, const char *name, struct xm_error *err)
{
    char known[256] = {0};
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        const struct xm_device_row *r = &rows[i];
        if (!xm_same_but_case(r->name, name)) {
            size_t used = strlen(known);
            snprintf(known + used, sizeof(known) - used, "%s%s", used ? " " : "",
                     r->name);
            continue;
        }
        uint32_t real = d->caps & ~d->pretended;
        d->kind = XM_DEVICE_GPU;
        d->vendor_id = INTEL;
        d->ip_major = r->major;
        d->ip_minor = r->minor_first;
        d->ip_revision = r->revision_first;
        d->facts_guessed = false;
        pretend_sub_groups(d, r);
        d->arch = r->arch;
        d->integrated = r->integrated;
        d->caps = (d->caps | r->set) & ~r->clear;
        d->pretended = d->caps & ~real;
        return XM_OK;
    }
    return xm_fail(err, XM_NOT_FOUND, "there is no chip '%s'; known chips are %s", name,
                   known);
}

enum xm_status
xm_sub_devices(uint32_t *n, struct xm_error *err)
{
    uint64_t wanted = 1;
    const char *text = xm_env("XM_SUB_DEVICES");
    if (text &&
        (!xm_parse_whole(text, &wanted) || wanted < 1 || wanted > XM_MOST_SUB_DEVICES))
        return xm_fail(err, XM_INVALID,
                       "XM_SUB_DEVICES is '%.40s': expected a number from 1 to %d", text,
                       XM_MOST_SUB_DEVICES);
    *n = (uint32_t)wanted;
    return XM_OK;
}

enum xm_status
xm_device_check_environment(struct xm_error *err)
{
    struct xm_device_info any = {0};
    const char *as = xm_env("XM_DEVICE_AS");
    uint32_t n;
    XM_TRY(xm_sub_devices(&n, err));
    const enum xm_status s = as ? xm_device_pretend(&any, as, err) : XM_OK;
    xm_error_prefix(err, "XM_DEVICE_AS");
    return s;
}

static const struct xm_card_row *
find_card(const char *name)
{
    for (size_t i = 0; i < XM_ARRAY_LEN(cards); i++)
        if (xm_same_but_case(cards[i].name, name))
            return &cards[i];
    return NULL;
}

enum xm_status
xm_device_imagine(const char *name, struct xm_device_info *out, struct xm_error *err)
{
    const struct xm_card_row *card = find_card(name);
    name = card ? card->chip : name;
    *out = (struct xm_device_info){
#define SG(a, b, c)                                                                      \
    {                                                                                    \
        a, b, c, 0                                                                       \
    }
#define USUAL(member, value) .member = value,
#include "runtime/devices.def"
#undef SG
    };
    XM_TRY(xm_device_pretend(out, name, err));
    for (size_t i = 0; i < XM_ARRAY_LEN(rows); i++) {
        if (xm_same_but_case(rows[i].name, name))
            snprintf(out->name, sizeof(out->name), "%s", rows[i].name);
    }
    out->pretended = 0;
    if (out->integrated)
        out->global_bytes = UINT64_MAX;
    if (!card)
        return XM_OK;
    snprintf(out->name, sizeof(out->name), "%s", card->name);
    out->compute_units = card->eus;
    out->clock_mhz = card->clock_mhz;
    out->memory_rate = card->memory_rate;
    if (card->memory)
        out->global_bytes = card->memory;
    return XM_OK;
}

const struct xm_card_row *
xm_card_rows(size_t *n)
{
    *n = XM_ARRAY_LEN(cards);
    return cards;
}

const struct xm_device_row *
xm_device_rows(size_t *n)
{
    *n = XM_ARRAY_LEN(rows);
    return rows;
}
