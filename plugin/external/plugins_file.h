/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of plugins, in the form of OpenVINO's plugins.xml:
 *
 *     <ie>
 *         <plugins>
 *             <plugin name="EXAMPLE" location="libexample.so">
 *                 <properties>
 *                     <property key="KEY" value="VALUE"/>
 *                 </properties>
 *             </plugin>
 *         </plugins>
 *     </ie>
 *
 * Other elements are skipped with their contents. No other file is opened. A location without a
 * slash is a file beside the list, or, if there is none, a name for dlopen's search; one with a
 * slash is relative to the list's folder.
 */
#ifndef XM_PLUGIN_EXTERNAL_PLUGINS_FILE_H
#define XM_PLUGIN_EXTERNAL_PLUGINS_FILE_H

#include "plugin/plugin.h"
#include "runtime/util/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xm_plugin_record {
    struct xm_plugin_record *next;
    const char *name, *location; /* a path for dlopen */
    struct xm_property *properties;
    uint32_t n_properties;
};

struct xm_plugins_file {
    struct xm_arena arena;          /* of all members below */
    struct xm_plugin_record *first; /* in the file's order */
};

/* XM_INVALID: the file is not such a list; the sentence names the line. The caller frees *out with
 * xm_plugins_file_free, also on failure. */
enum xm_status xm_plugins_file_read(const char *path, struct xm_plugins_file *out,
                                    struct xm_error *err);
void xm_plugins_file_free(struct xm_plugins_file *f);

#ifdef __cplusplus
}
#endif
#endif
