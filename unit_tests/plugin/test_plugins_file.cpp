/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of plugins: OpenVINO's file format, invalid files, and the core's use of them.
 */
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "plugin/external/plugins_file.h"
#include "runtime/util/log.h"

namespace
{

class PluginsFile : public testing::Test
{
  protected:
    PluginsFile()
        : folder(testing::TempDir() + "xemoe_plugins_" + std::to_string(getpid())),
          path(folder + "/plugins.xml")
    {
        EXPECT_EQ(system(("mkdir -p " + folder).c_str()), 0);
    }

    ~PluginsFile() override
    {
        xm_plugins_file_free(&file);
        EXPECT_EQ(system(("rm -r " + folder).c_str()), 0);
    }

    xm_status read(const std::string &text)
    {
        std::ofstream(path, std::ios::binary) << text;
        xm_plugins_file_free(&file);
        err = {};
        return xm_plugins_file_read(path.c_str(), &file, &err);
    }

    xm_status read_plugins(const std::string &inside)
    {
        return read("<ie><plugins>" + inside + "</plugins></ie>");
    }

    std::string list() const
    {
        std::string s;
        for (auto *p = file.first; p; p = p->next) {
            s += std::string(p->name) + " " + p->location;
            for (uint32_t i = 0; i < p->n_properties; i++)
                s += std::string(" ") + p->properties[i].key + "=" +
                     p->properties[i].value;
            s += "\n";
        }
        return s;
    }

    std::string folder, path;
    xm_plugins_file file = {};
    xm_error err = {};
};

TEST_F(PluginsFile, HasNamesLocationsAndProperties)
{
    std::ofstream(folder + "/libbeside.so") << "";
    ASSERT_EQ(read(R"(<?xml version="1.0"?>
        <!-- of the test -->
        <ie version="1">
            <plugins>
                <plugin name="A" location="libbeside.so">
                    <properties>
                        <property key="K" value="V &amp; W"/>
                        <property key="L" value=""/>
                    </properties>
                </plugin>
                <plugin name="B" location="libelsewhere.so">
                    <extensions><extension location="x"/></extensions>
                </plugin>
                <plugin name="C" location="sub/libc.so"/>
                <plugin name="D" location="/opt/libd.so" more="1"></plugin>
            </plugins>
            <other><plugin/></other>
        </ie>)"),
              XM_OK)
        << err.text;
    EXPECT_EQ(list(), "A " + folder + "/libbeside.so K=V & W L=\nB libelsewhere.so\nC " +
                          folder + "/sub/libc.so\nD /opt/libd.so\n");
    EXPECT_EQ(read("<ie/>"), XM_OK);
    EXPECT_EQ(list(), "");
}

TEST_F(PluginsFile, SaysWhatIsNoList)
{
    const struct {
        const char *text, *why;
    } cases[] = {
        {"", "not valid XML"},
        {"# Title\n", "line 1, column 1: not valid XML"},
        {"<net><plugins/></net>", "the root element is not <ie>"},
        {"<ie><plugins>", "not valid XML"},
        {"<ie><plugins><plugin location='x'/></plugins></ie>", "no attribute 'name'"},
        {"<ie>\n<plugins><plugin name='x'/></plugins></ie>",
         "line 2: <plugin> has no attribute 'location'"},
        {"<ie><plugins><plugin name='x' location='y'><properties><property key='k'/>"
         "</properties></plugin></plugins></ie>",
         "no attribute 'value'"},
        {"<!DOCTYPE ie [<!ENTITY a 'aaaaaaaaaa'>]><ie>&a;</ie>",
         "declares a document type"},
        {"<ie>\xff</ie>", "not valid XML"},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(read(c.text), XM_INVALID) << c.text;
        EXPECT_NE(std::string(err.text).find(c.why), std::string::npos) << err.text;
        EXPECT_NE(std::string(err.text).find("is not a list of plugins"),
                  std::string::npos);
    }
    err = {};
    EXPECT_EQ(xm_plugins_file_read((folder + "/none.xml").c_str(), &file, &err),
              XM_NOT_FOUND);
    err = {};
    EXPECT_EQ(xm_plugins_file_read(folder.c_str(), &file, &err), XM_IO);
}

TEST_F(PluginsFile, HasBounds)
{
    const std::string plugin = "<plugin name='x' location='/y'/>";
    const auto repeat = [](const std::string &s, int n) {
        std::string all;
        for (int i = 0; i < n; i++)
            all += s;
        return all;
    };
    EXPECT_EQ(read_plugins(repeat(plugin, 256)), XM_OK);
    EXPECT_EQ(read_plugins(repeat(plugin, 257)), XM_INVALID);
    const auto with_properties = [&](int n) {
        return read_plugins("<plugin name='x' location='/y'><properties>" +
                            repeat("<property key='k' value='v'/>", n) +
                            "</properties></plugin>");
    };
    EXPECT_EQ(with_properties(256), XM_OK);
    EXPECT_EQ(with_properties(257), XM_INVALID);
    EXPECT_EQ(read("<ie>" + repeat("<a>", 31) + repeat("</a>", 31) + "</ie>"), XM_OK);
    EXPECT_EQ(read("<ie>" + repeat("<a>", 32) + repeat("</a>", 32) + "</ie>"),
              XM_INVALID);
    EXPECT_EQ(read_plugins("<plugin name='x' location='/" + repeat("y", 4095) + "'/>"),
              XM_OK);
    EXPECT_EQ(read_plugins("<plugin name='x' location='/" + repeat("y", 4096) + "'/>"),
              XM_INVALID);
    EXPECT_EQ(read("<ie>" + std::string(1 << 20, ' ') + "</ie>"), XM_INVALID);
}

TEST_F(PluginsFile, MayRunOutOfMemory)
{
    xm_status s = XM_NO_MEMORY;
    for (uint64_t n = 1; s != XM_OK; n++) {
        xm_fail_allocation(n);
        s = read_plugins("<plugin name='x' location='y'><properties>"
                         "<property key='k' value='v'/></properties></plugin>");
        xm_fail_allocation(0);
        if (s != XM_OK) {
            EXPECT_EQ(s, XM_NO_MEMORY) << err.text;
        }
    }
}

/* ---- the core ---------------------------------------------------------------------- */

class CoreWithList : public PluginsFile
{
  protected:
    CoreWithList()
    {
        EXPECT_EQ(xm_core_create(&core, &err), XM_OK) << err.text;
    }

    ~CoreWithList() override
    {
        xm_core_destroy(core);
    }

    xm_status load(const std::string &inside)
    {
        std::ofstream(path) << "<ie><plugins>" << inside << "</plugins></ie>";
        err = {};
        return xm_core_load_list(core, path.c_str(), &err);
    }

    std::string devices()
    {
        std::string names;
        xm_core_devices(
            core,
            [](const char *name, void *to) {
                *static_cast<std::string *>(to) += std::string(name) + " ";
            },
            &names);
        return names;
    }

    xm_core *core = nullptr;
};

TEST_F(CoreWithList, PassesOverOpenVinosOwn)
{
    const std::string before = devices();
    EXPECT_EQ(load("<plugin name='AUTO' location='libopenvino_auto_plugin.so'/>"
                   "<plugin name='BATCH' location='libopenvino_auto_batch_plugin.so'/>"
                   "<plugin name='CPU' location='libopenvino_intel_cpu_plugin.so'/>"
                   "<plugin name='GPU' location='libopenvino_intel_gpu_plugin.so'/>"
                   "<plugin name='HETERO' location='libopenvino_hetero_plugin.so'/>"
                   "<plugin name='MULTI' location='libopenvino_auto_plugin.so'/>"
                   "<plugin name='NPU' location='libopenvino_intel_npu_plugin.so'/>"),
              XM_OK)
        << err.text;
    EXPECT_EQ(devices(), before);
    xm_plugin *p = nullptr;
    uint32_t index;
    EXPECT_EQ(xm_core_find(core, "NPU", &p, &index, &err), XM_NOT_FOUND);
}

TEST_F(CoreWithList, SaysWhatItDoesNotLoad)
{
    std::string log;
    xm_log_set_level(XM_LOG_INFO);
    xm_log_set_sink(
        [](xm_log_level level, const char *line, void *to) {
            *static_cast<std::string *>(to) +=
                std::string(xm_log_prefix(level)) + line + "\n";
        },
        &log);
    EXPECT_EQ(load("<plugin name='GPU' location='libopenvino_intel_gpu_plugin.so'/>"
                   "<plugin name='AUTO' location='libopenvino_auto_plugin.so'/>"
                   "<plugin name='CPU' location='libmine.so'/>"
                   "<plugin name='ACME' location='/opt/libopenvino_acme.so'/>"),
              XM_OK);
    xm_log_set_sink(nullptr, nullptr);
    xm_log_set_level(XM_LOG_WARNING);
    EXPECT_EQ(
        log,
        "plugin GPU of the plugin list is not loaded: the device is built "
        "in\nplugin AUTO of the plugin list is not loaded: the device is built "
        "in\nwarning: plugin CPU of the plugin list is not loaded: the device is built "
        "in\nwarning: plugin ACME of the plugin list is not loaded: "
        "'/opt/libopenvino_acme.so' is named like OpenVINO's own plugins, which "
        "xemoe cannot load; a plugin of xemoe needs another file name\n");
}

TEST_F(CoreWithList, LoadsWhatItListsWhenItIsUsed)
{
    xm_plugin *p = nullptr;
    uint32_t index;
    std::string log;
    ASSERT_EQ(load("<plugin name='GONE' location='/no/such/library.so'/>"), XM_OK);
    ASSERT_EQ(load("<plugin name='GONE' location='/no/such/library.so'/>"), XM_OK);
    EXPECT_EQ(load("<plugin name='GONE' location='/other.so'/>"), XM_INVALID);
    EXPECT_STREQ(err.text, "a plugin for device 'GONE' is registered already");
    EXPECT_EQ(load("<plugin name='A.B' location='/other.so'/>"), XM_INVALID);
    for (int i = 0; i < 2; i++) {
        err = {};
        EXPECT_EQ(xm_core_find(core, "GONE", &p, &index, &err), XM_INVALID);
        EXPECT_NE(std::string(err.text).find("library '/no/such/library.so'"),
                  std::string::npos)
            << err.text;
    }
    xm_log_set_sink([](xm_log_level, const char *line,
                       void *to) { *static_cast<std::string *>(to) += line; },
                    &log);
    const std::string names = devices();
    EXPECT_NE(log.find("device GONE is not available: "), std::string::npos) << log;
    log.clear();
    EXPECT_EQ(devices(), names);
    EXPECT_EQ(log, ""); /* warned only once */
    xm_log_set_sink(nullptr, nullptr);
    EXPECT_EQ(names.find("GONE"), std::string::npos);
    err = {};
    EXPECT_EQ(xm_core_add_library(core, "GONE", "/no/such/library.so", &err), XM_INVALID);
}

TEST_F(CoreWithList, IsReadFromTheEnvironment)
{
    const auto create = [&] {
        xm_core *c = nullptr;
        err = {};
        const xm_status s = xm_core_create(&c, &err);
        xm_core_destroy(c);
        return s;
    };
    std::ofstream(path)
        << "<ie><plugins><plugin name='A' location='/a.so'/></plugins></ie>";
    setenv("XM_PLUGINS", (path + "::" + path).c_str(), 1);
    EXPECT_EQ(create(), XM_OK) << err.text;
    setenv("XM_PLUGINS", (path + ":" + folder + "/none.xml").c_str(), 1);
    EXPECT_EQ(create(), XM_NOT_FOUND);
    EXPECT_EQ(std::string(err.text).find("XM_PLUGINS: cannot open '"), 0u) << err.text;
    unsetenv("XM_PLUGINS");
}

} // namespace
