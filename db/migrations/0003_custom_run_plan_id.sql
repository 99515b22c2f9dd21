ALTER TABLE "connection_runs" RENAME COLUMN "plan_id" TO "custom_run_plan_id";--> statement-breakpoint
DROP INDEX "connection_runs_one_live";--> statement-breakpoint
DROP INDEX "connection_runs_plan";--> statement-breakpoint
CREATE UNIQUE INDEX "connection_runs_one_live" ON "connection_runs" USING btree ("connection_id") WHERE "connection_runs"."custom_run_plan_id" is null and "connection_runs"."status" in ('queued', 'running', 'retrying', 'stopping');--> statement-breakpoint
CREATE INDEX "connection_runs_plan" ON "connection_runs" USING btree ("custom_run_plan_id","chunk_index") WHERE "connection_runs"."custom_run_plan_id" is not null;--> statement-breakpoint
ALTER TABLE "connection_runs" DROP COLUMN "parent_run_id";--> statement-breakpoint
ALTER TABLE "connection_runs" DROP COLUMN "max_attempts";