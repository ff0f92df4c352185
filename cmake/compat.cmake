# SPDX-License-Identifier: Apache-2.0
# A folder with the library under the names that programs written for OpenVINO look for:
# build/compat, and lib/xemoe/compat when installed. It is separate so that no program finds it by
# accident. Everything in it is a link, except the files that find_package and pkg-config read.
#
# The libraries are links and not small libraries that depend on libxemoe: a linker would not look
# for symbols in such a dependency.
set(XM_OPENVINO_VERSION 2026.4.1) # version of the API; the binaries' names end in 2641
set(XM_GENAI_VERSION 2026.4.0)

# Fills the folder `compat`; `library` and `include` are the targets of the links, relative to it.
function(xm_fill_compat compat library include)
    file(MAKE_DIRECTORY ${compat}/cmake ${compat}/runtime/lib)
    set(names libxemoe.so libxemoe.so.0)
    foreach(base openvino openvino_c openvino_genai openvino_genai_c)
        # Includes the names that programs need which were linked to earlier releases.
        list(APPEND names lib${base}.so lib${base}.so.2641 lib${base}.so.2640 lib${base}.so.2630)
    endforeach()
    foreach(name ${names})
        file(CREATE_LINK ${library} ${compat}/${name} SYMBOLIC)
    endforeach()
    file(CREATE_LINK ${include} ${compat}/include SYMBOLIC)
    # The layout below $INTEL_OPENVINO_DIR.
    file(CREATE_LINK ../.. ${compat}/runtime/lib/intel64 SYMBOLIC)
    file(CREATE_LINK ../include ${compat}/runtime/include SYMBOLIC)
    file(CREATE_LINK ../cmake ${compat}/runtime/cmake SYMBOLIC)
    configure_file(cmake/compat/openvino.pc.in ${compat}/pkgconfig/openvino.pc @ONLY)
    foreach(package OpenVINO OpenVINOGenAI)
        configure_file(cmake/compat/${package}Config.cmake.in
                       ${compat}/cmake/${package}Config.cmake @ONLY)
    endforeach()
    include(CMakePackageConfigHelpers)
    write_basic_package_version_file(${compat}/cmake/OpenVINOConfigVersion.cmake
        VERSION ${XM_OPENVINO_VERSION} COMPATIBILITY SameMajorVersion)
    write_basic_package_version_file(${compat}/cmake/OpenVINOGenAIConfigVersion.cmake
        VERSION ${XM_GENAI_VERSION} COMPATIBILITY SameMajorVersion)
endfunction()

xm_fill_compat(${CMAKE_BINARY_DIR}/compat ../libxemoe.so.0 ${PROJECT_SOURCE_DIR}/plugin/include)

set(installed ${CMAKE_INSTALL_LIBDIR}/xemoe/compat)
set(from ${CMAKE_INSTALL_FULL_LIBDIR}/xemoe/compat)
file(RELATIVE_PATH to_library ${from} ${CMAKE_INSTALL_FULL_LIBDIR}/libxemoe.so.0)
file(RELATIVE_PATH to_include ${from} ${CMAKE_INSTALL_FULL_INCLUDEDIR}/xemoe)
xm_fill_compat(${CMAKE_BINARY_DIR}/installed-compat ${to_library} ${to_include})
install(DIRECTORY ${CMAKE_BINARY_DIR}/installed-compat/ DESTINATION ${installed})
