/*
 * boost::shared_ptr where Boost is not installed: the standard library's under that name.
 *
 * Keep this folder behind Boost's own, if there is one, or leave it out.
 */
#ifndef SAPWOOD_BOOST_SHARED_PTR_HPP
#define SAPWOOD_BOOST_SHARED_PTR_HPP

#include <memory>

namespace boost {

using std::const_pointer_cast;
using std::dynamic_pointer_cast;
using std::make_shared;
using std::shared_ptr;
using std::static_pointer_cast;
using std::weak_ptr;

}  // namespace boost

#endif
