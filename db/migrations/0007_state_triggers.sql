-- What a CHECK constraint cannot see: the row before, and the rows of another table.
CREATE FUNCTION "refuse_lower_fence"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'fence of stream run % cannot go back from % to %', NEW."id", OLD."fence", NEW."fence"
    USING ERRCODE = 'check_violation', CONSTRAINT = 'stream_runs_fence_rises', TABLE = 'stream_runs';
END $$;--> statement-breakpoint
CREATE TRIGGER "stream_runs_fence_rises" BEFORE UPDATE OF "fence" ON "stream_runs"
  FOR EACH ROW WHEN (NEW."fence" < OLD."fence") EXECUTE FUNCTION "refuse_lower_fence"();--> statement-breakpoint
CREATE FUNCTION "refuse_new_life"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% % is % and cannot become %', TG_TABLE_NAME, NEW."id", OLD."status", NEW."status"
    USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
END $$;--> statement-breakpoint
CREATE TRIGGER "connection_runs_end_is_final" BEFORE UPDATE OF "status" ON "connection_runs"
  FOR EACH ROW WHEN (NEW."status" <> OLD."status" AND OLD."status" NOT IN ('queued', 'running', 'retrying', 'stopping'))
  EXECUTE FUNCTION "refuse_new_life"();--> statement-breakpoint
CREATE TRIGGER "stream_runs_end_is_final" BEFORE UPDATE OF "status" ON "stream_runs"
  FOR EACH ROW WHEN (NEW."status" <> OLD."status" AND OLD."status" NOT IN ('pending', 'retrying', 'running', 'rate_limited'))
  EXECUTE FUNCTION "refuse_new_life"();--> statement-breakpoint
CREATE FUNCTION "refuse_live_stream_of_ended_run"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  run_id uuid;
BEGIN
  IF TG_TABLE_NAME = 'connection_runs' THEN run_id := NEW."id"; ELSE run_id := NEW."connection_run_id"; END IF;
  IF EXISTS (
    SELECT FROM "stream_runs" s JOIN "connection_runs" r ON r."id" = s."connection_run_id"
    WHERE s."connection_run_id" = run_id AND s."status" IN ('pending', 'retrying', 'running', 'rate_limited')
      AND r."status" NOT IN ('queued', 'running', 'retrying', 'stopping')
  ) THEN
    RAISE EXCEPTION 'run % has ended, but a stream of it has not', run_id
      USING ERRCODE = 'check_violation', CONSTRAINT = 'stream_runs_of_live_run', TABLE = 'stream_runs';
  END IF;
  RETURN NULL;
END $$;--> statement-breakpoint
-- Checked at the commit, so that a transaction may end a run and its streams in any order.
CREATE CONSTRAINT TRIGGER "connection_runs_streams_ended" AFTER UPDATE OF "status" ON "connection_runs"
  DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW."status" <> OLD."status" AND NEW."status" NOT IN ('queued', 'running', 'retrying', 'stopping'))
  EXECUTE FUNCTION "refuse_live_stream_of_ended_run"();--> statement-breakpoint
CREATE CONSTRAINT TRIGGER "stream_runs_of_live_run" AFTER INSERT ON "stream_runs"
  DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW."status" IN ('pending', 'retrying', 'running', 'rate_limited'))
  EXECUTE FUNCTION "refuse_live_stream_of_ended_run"();
