"""Which laws are used, and in which order they are tried at a node."""

from __future__ import annotations

from headwater.optimizer.physical.early_windows import early_windows
from headwater.optimizer.physical.memory_aware import memory_aware
from headwater.optimizer.physical.native_parts import native_parts
from headwater.optimizer.physical.order_columns import order_columns
from headwater.optimizer.physical.partial_aggregates import partial_aggregates
from headwater.optimizer.physical.prune_columns import prune_columns
from headwater.optimizer.rule import Rule
from headwater.optimizer.rules.aggregate_below_join import aggregate_below_join
from headwater.optimizer.rules.anti_join_as_difference import anti_join_as_difference
from headwater.optimizer.rules.difference_chain import difference_chain
from headwater.optimizer.rules.distinct_below_union import distinct_below_union
from headwater.optimizer.rules.distinct_in_aggregate import distinct_in_aggregate
from headwater.optimizer.rules.distinct_in_distinct import distinct_in_distinct
from headwater.optimizer.rules.distinct_in_semi_join import distinct_in_semi_join
from headwater.optimizer.rules.distinct_in_set_operation import distinct_in_set_operation
from headwater.optimizer.rules.distinct_join_as_semi_join import distinct_join_as_semi_join
from headwater.optimizer.rules.distinct_of_set_operation import distinct_of_set_operation
from headwater.optimizer.rules.distinct_over_join import distinct_over_join
from headwater.optimizer.rules.drop_coalesce import drop_coalesce
from headwater.optimizer.rules.drop_distinct import drop_distinct
from headwater.optimizer.rules.drop_split import drop_split
from headwater.optimizer.rules.filter_into_join import filter_into_join
from headwater.optimizer.rules.fold_constants import fold_constants
from headwater.optimizer.rules.join_order import join_order
from headwater.optimizer.rules.join_over_difference import join_over_difference
from headwater.optimizer.rules.join_over_union import join_over_union
from headwater.optimizer.rules.limit_from_rank import limit_from_rank
from headwater.optimizer.rules.merge_filters import merge_filters
from headwater.optimizer.rules.merge_projects import merge_projects
from headwater.optimizer.rules.merge_unions import merge_unions
from headwater.optimizer.rules.narrow_aggregate import narrow_aggregate
from headwater.optimizer.rules.narrow_join import narrow_join
from headwater.optimizer.rules.narrow_unnest import narrow_unnest
from headwater.optimizer.rules.now_window import now_window
from headwater.optimizer.rules.order_operands import order_operands
from headwater.optimizer.rules.outer_to_inner import outer_to_inner
from headwater.optimizer.rules.place_coalesce import place_coalesce
from headwater.optimizer.rules.project_through_row_window import project_through_row_window
from headwater.optimizer.rules.project_through_split import project_through_split
from headwater.optimizer.rules.project_through_time_window import project_through_time_window
from headwater.optimizer.rules.project_through_union import project_through_union
from headwater.optimizer.rules.propagate_empty import propagate_empty
from headwater.optimizer.rules.push_down_filter import push_down_filter
from headwater.optimizer.rules.repeated_input import repeated_input
from headwater.optimizer.rules.residual_to_sides import residual_to_sides
from headwater.optimizer.rules.semi_join_of_unique import semi_join_of_unique
from headwater.optimizer.rules.unused_aggregates import unused_aggregates
from headwater.optimizer.rules.unused_outer_join import unused_outer_join
from headwater.optimizer.rules.unused_rank import unused_rank
from headwater.optimizer.rules.window_over_union import window_over_union

LAWS: tuple[Rule, ...] = (
    # less to do at all
    *(fold_constants, propagate_empty, merge_filters, merge_projects, merge_unions, now_window),
    *(repeated_input, drop_split, drop_coalesce, drop_distinct, distinct_in_distinct, distinct_of_set_operation),
    *(distinct_in_set_operation, distinct_in_aggregate, outer_to_inner, unused_outer_join, unused_aggregates),
    *(limit_from_rank, unused_rank),
    # fewer rows
    *(push_down_filter, filter_into_join, residual_to_sides),
    # fewer columns
    *(project_through_union, project_through_split, narrow_join, narrow_aggregate, narrow_unnest),
    # cheaper operators
    *(semi_join_of_unique, anti_join_as_difference, difference_chain, join_over_difference, order_operands),
)
"""Laws that always help."""

CHOICES: tuple[Rule, ...] = (
    *(window_over_union, project_through_time_window, project_through_row_window),
    *(distinct_over_join, distinct_below_union, distinct_in_semi_join, distinct_join_as_semi_join),
    *(join_order, join_over_union, aggregate_below_join, place_coalesce),
)
"""Laws that may help or not, as the cost model says."""

PHYSICAL: tuple[Rule, ...] = (
    early_windows,
    memory_aware,
    partial_aggregates,
    order_columns,
    prune_columns,
    native_parts,
)
"""How the chosen plan runs: one after the other, each wherever it applies."""
