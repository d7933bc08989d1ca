# The public names of lance_nb.spark, each once; its module is imported when the name is first used.
from .background_jobs import Job as Job, RunProgress as RunProgress, jobs as jobs, submit as submit
from .dataframes import plan_frame as plan_frame, read as read, register as register
from .engine import TaskProgress as TaskProgress
from .journal import forget as forget, unfinished as unfinished
from .merge_insert import (
    MergeRun as MergeRun,
    merge as merge,
    plan_merge as plan_merge,
    plan_upsert as plan_upsert,
    update_columns as update_columns,
    upsert as upsert,
)
from .operations import (
    append as append,
    backfill as backfill,
    clone as clone,
    compact as compact,
    count as count,
    create_index as create_index,
    create_scalar_index as create_scalar_index,
    delete as delete,
    diff as diff,
    diff_frame as diff_frame,
    orphans as orphans,
    statistics as statistics,
    update as update,
    write as write,
)
from .queries import sql as sql
from .run import choose as choose, explain as explain, resume as resume, run_edits as run_edits
from .sessions import (
    find_session as find_session,
    start_session as start_session,
    why_not as why_not,
)
from .tasks.columns import plan_cast as plan_cast, plan_columns as plan_columns
from .tasks.files import SourceSettings as SourceSettings, plan_append as plan_append
from .tasks.maintenance import (
    plan_clone as plan_clone,
    plan_compaction as plan_compaction,
    plan_index as plan_index,
)
from .tasks.rows import (
    plan_count as plan_count,
    plan_delete as plan_delete,
    plan_diff as plan_diff,
    plan_update as plan_update,
)
from .views import register_views as register_views
