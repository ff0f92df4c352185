# SPDX-License-Identifier: Apache-2.0
# Installs the program, the library, its public headers, a CMake package, a pkg-config file and the
# folder of compat.cmake for programs written for OpenVINO; the target `products` builds all of it.
# tools/check_install tests the result.

# A subfolder, since ${CMAKE_INSTALL_INCLUDEDIR} itself may have OpenVINO's own headers.
set(XM_INCLUDE_DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/xemoe)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY TRUE) # installing needs no tests

# Exports only what the API's headers mark; the script also hides symbols of static libraries.
target_link_options(xemoe PRIVATE
                    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
set_target_properties(xemoe PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)

add_custom_target(products)
add_dependencies(products xemoe xemoe_cli benchmark_app bench_kernels)
# The first step, so that an incomplete build installs nothing.
set(needed $<TARGET_FILE:xemoe> $<TARGET_FILE:xemoe_cli> $<TARGET_FILE:benchmark_app>
    $<TARGET_FILE:bench_kernels>)
if(NOT CMAKE_CROSSCOMPILING)
    list(APPEND needed ${CMAKE_BINARY_DIR}/program_docs/reference.md)
endif()
install(CODE "
    foreach(file ${needed})
        if(NOT EXISTS \${file})
            message(FATAL_ERROR \"\${file} is not built, so nothing was installed: run \"
                    \"cmake --build ${CMAKE_BINARY_DIR} --target products\")
        endif()
    endforeach()")
install(TARGETS xemoe EXPORT xemoeTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${XM_INCLUDE_DESTINATION})
if(TARGET xemoe_mpi)
    add_dependencies(products xemoe_mpi)
    install(TARGETS xemoe_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/xemoe COMPONENT mpi)
endif()
install(TARGETS xemoe_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Not in bin: only xemoe starts them, and OpenVINO's own benchmark_app may be there.
install(TARGETS benchmark_app bench_kernels RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/xemoe)
install(DIRECTORY plugin/include/ DESTINATION ${XM_INCLUDE_DESTINATION}
        FILES_MATCHING PATTERN "*.h")
file(RELATIVE_PATH XM_PC_TO_PREFIX
    "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
# A distribution may give absolute folders, which are not below the prefix.
cmake_path(APPEND XM_PC_LIBDIR "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND XM_PC_INCLUDEDIR "\${prefix}" "${XM_INCLUDE_DESTINATION}")
configure_file(cmake/xemoe.pc.in xemoe.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/xemoe.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(XM_CMAKE_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/xemoe)
install(EXPORT xemoeTargets NAMESPACE xemoe:: DESTINATION ${XM_CMAKE_DESTINATION})
include(CMakePackageConfigHelpers)
configure_file(cmake/xemoeConfig.cmake.in xemoeConfig.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/xemoeConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/xemoeConfig.cmake ${CMAKE_BINARY_DIR}/xemoeConfigVersion.cmake
        DESTINATION ${XM_CMAKE_DESTINATION})

if(TARGET PkgConfig::MICROHTTPD)
    # The program's path is known only at installation, since --prefix may give another one.
    install(CODE "
        set(XM_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
        configure_file(${PROJECT_SOURCE_DIR}/cmake/systemd/xemoe.service.in
                       ${CMAKE_CURRENT_BINARY_DIR}/systemd/xemoe.service @ONLY)")
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/systemd/xemoe.service
            ${PROJECT_SOURCE_DIR}/cmake/systemd/xemoe.socket DESTINATION lib/systemd/user)
endif()

include(cmake/compat.cmake)
include(cmake/program_docs.cmake)
include(cmake/package.cmake)
# The documents, and README.md above them so that links between them work.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/xemoe
    FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/xemoe)
# Distributions look for the licence in "copyright"; README.md refers to LICENSE.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/xemoe)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/xemoe
    RENAME copyright)
