// lyo.inner: Boost.PFR and range-v3 for lyo's bodies. Never installed and never imported by a public interface, so a
// host project needs neither library.
module;
#include <boost/pfr.hpp>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/numeric/accumulate.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/reverse.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

export module lyo.inner;

export namespace boost::pfr {
using boost::pfr::for_each_field;
using boost::pfr::get;
using boost::pfr::tuple_element_t;
using boost::pfr::tuple_size_v;
}  // namespace boost::pfr

export namespace ranges {
using ranges::accumulate;
using ranges::all_of;
using ranges::any_of;
using ranges::to;
namespace views {
using ranges::views::enumerate;
using ranges::views::filter;
using ranges::views::iota;
using ranges::views::reverse;
using ranges::views::transform;
using ranges::views::zip;
}  // namespace views
}  // namespace ranges
