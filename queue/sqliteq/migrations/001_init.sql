-- The first schema. Times are milliseconds since 1970 in store time; NULL means "never" or "not yet".

-- One row: who this store is and how far its counters are.
CREATE TABLE meta (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  id_key     BLOB    NOT NULL, -- AES-128 key of the ids
  epoch      INTEGER NOT NULL, -- raised at every open
  next_seq   INTEGER NOT NULL, -- next number of a job or of a place at a tail; never reused
  front      INTEGER NOT NULL, -- lowest place given at a front
  revision   INTEGER NOT NULL, -- last revision of a record
  enqueued   INTEGER NOT NULL, -- jobs ever created
  removed    INTEGER NOT NULL, -- jobs deleted, purged, retained away
  scheduling BLOB              -- last configuration of the queues, JSON
) STRICT;

CREATE TABLE tenants (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- Every queue that ever got a job or an override.
CREATE TABLE queues (
  id       INTEGER PRIMARY KEY,
  tenant   INTEGER NOT NULL,
  name     TEXT    NOT NULL,
  used     INTEGER NOT NULL, -- 1 once it got a job
  served   INTEGER NOT NULL, -- reservations ever, up to a second behind
  weight   REAL,             -- override, as are the next two
  priority INTEGER,
  paused   INTEGER,
  UNIQUE (tenant, name)
) STRICT;

-- Jobs that are not finished. Deliberately not STRICT: a damaged row must be read, so that it can be set aside.
CREATE TABLE jobs (
  seq        INTEGER PRIMARY KEY,
  queue      INTEGER NOT NULL,
  priority   INTEGER NOT NULL,
  birth      INTEGER NOT NULL, -- milliseconds << 20 + a rising number in each, see idcodec.go
  pos        INTEGER, -- place in its line; NULL = seq
  run_at     INTEGER, -- while scheduled
  expires_at INTEGER,
  record     BLOB NOT NULL, -- what was asked for, see record.go
  state      BLOB           -- what happened to it, see state.go; NULL = nothing yet
);

-- Finished jobs, in the order in which they finished; dead ones have numbers of their own, from 2^60 on, because they
-- are kept for another time.
CREATE TABLE finished (
  fin         INTEGER PRIMARY KEY,
  tenant      INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  queue       INTEGER NOT NULL,
  priority    INTEGER NOT NULL,
  outcome     INTEGER NOT NULL, -- see stateCodes
  birth       INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  expires_at  INTEGER,
  record      BLOB NOT NULL,
  state       BLOB
);
CREATE INDEX finished_job ON finished (tenant, seq);
CREATE INDEX finished_dead ON finished (tenant, seq, queue) WHERE outcome = 5;

-- Large payloads, results and checkpoints, so that no list reads them and no change of state rewrites them:
-- key = 4 * seq + kind.
CREATE TABLE blobs (
  key  INTEGER PRIMARY KEY,
  data BLOB NOT NULL
);

CREATE TABLE idempotency (
  tenant      INTEGER NOT NULL,
  key         TEXT    NOT NULL,
  seq         INTEGER NOT NULL,
  birth       INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  fingerprint BLOB    NOT NULL,
  UNIQUE (tenant, key)
) STRICT;
CREATE INDEX idempotency_expiry ON idempotency (expires_at);

CREATE TABLE uniques (
  tenant     INTEGER NOT NULL,
  key        TEXT    NOT NULL,
  seq        INTEGER NOT NULL,
  birth      INTEGER NOT NULL,
  PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

-- Reserved batches of the running process. What is found here at the next open was in its hands when it died.
CREATE TABLE batches (
  id         INTEGER PRIMARY KEY,
  worker     TEXT    NOT NULL,
  started_at INTEGER NOT NULL,
  lease_ms   INTEGER NOT NULL,
  jobs       BLOB    NOT NULL -- see batchrow.go
) STRICT;

CREATE TABLE logs (
  seq     INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  run     INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  level   TEXT    NOT NULL,
  message TEXT    NOT NULL,
  PRIMARY KEY (seq, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
  kind     TEXT    NOT NULL,
  key      TEXT    NOT NULL,
  revision INTEGER NOT NULL,
  value    BLOB    NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
