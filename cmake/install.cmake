# SPDX-License-Identifier: Apache-2.0
# Installs the library, its public headers and a pkg-config file. (The program's folder
# installs the program.) tools/check_install tries what lies here.
if(TARGET xemoe)
    # The API is what its headers mark; this keeps symbols of static libraries in as well.
    target_link_options(xemoe PRIVATE
                        -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
    set_target_properties(xemoe PROPERTIES LINK_DEPENDS
                          ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    install(TARGETS xemoe LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(DIRECTORY plugin/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
            FILES_MATCHING PATTERN "*.h")
    file(RELATIVE_PATH XM_PC_TO_PREFIX
        "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
    configure_file(cmake/xemoe.pc.in xemoe.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/xemoe.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
