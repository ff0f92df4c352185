# SPDX-License-Identifier: Apache-2.0
# `cpack -G DEB` in the build folder: Debian packages of what cmake --install installs. The module for
# MPI has a package of its own, so that only who splits models over processes needs an MPI.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME xemoe)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
    "Mixture-of-Experts language models on Intel GPUs through OpenCL")
set(CPACK_PACKAGE_CONTACT "the developers of xemoe")
set(CPACK_PACKAGE_VENDOR xemoe)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "intel-opencl-icd | pocl-opencl-icd")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME xemoe)
if(TARGET xemoe_mpi)
    set(CPACK_DEB_COMPONENT_INSTALL ON)
    set(CPACK_COMPONENTS_ALL Unspecified mpi)
    set(CPACK_DEBIAN_MPI_PACKAGE_NAME xemoe-mpi)
    set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "xemoe (= ${PROJECT_VERSION})")
    set(CPACK_COMPONENT_MPI_DESCRIPTION "Splits models of xemoe over MPI processes and machines")
endif()
include(CPack)
