CREATE TABLE "verifications" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"connection_id" uuid NOT NULL,
	"connection_run_id" uuid,
	"status" text DEFAULT 'queued' NOT NULL,
	"stream_names" text[],
	"repair" boolean DEFAULT false NOT NULL,
	"streams" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"error" jsonb,
	"attempts" integer DEFAULT 0 NOT NULL,
	"heartbeat_at" timestamp(3) with time zone,
	"triggered_by" uuid,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"started_at" timestamp(3) with time zone,
	"finished_at" timestamp(3) with time zone,
	CONSTRAINT "verifications_status_known" CHECK ("verifications"."status" in ('queued', 'running', 'stopping', 'succeeded', 'failed', 'stopped')),
	CONSTRAINT "verifications_finished" CHECK (("verifications"."finished_at" is not null) = ("verifications"."status" not in ('queued', 'running', 'stopping'))),
	CONSTRAINT "verifications_attempts" CHECK ("verifications"."attempts" >= 0),
	CONSTRAINT "verifications_failed" CHECK ("verifications"."error" is null or "verifications"."status" = 'failed'),
	CONSTRAINT "verifications_streams" CHECK (jsonb_typeof("verifications"."streams") = 'array')
);
--> statement-breakpoint
ALTER TABLE "stream_runs" ADD COLUMN "source_snapshot" text;--> statement-breakpoint
ALTER TABLE "verifications" ADD CONSTRAINT "verifications_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "verifications" ADD CONSTRAINT "verifications_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "verifications" ADD CONSTRAINT "verifications_connection_run_id_connection_runs_id_fk" FOREIGN KEY ("connection_run_id") REFERENCES "public"."connection_runs"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "verifications" ADD CONSTRAINT "verifications_triggered_by_users_id_fk" FOREIGN KEY ("triggered_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "verifications_one_live" ON "verifications" USING btree ("connection_id") WHERE "verifications"."status" in ('queued', 'running', 'stopping');--> statement-breakpoint
CREATE INDEX "verifications_list" ON "verifications" USING btree ("connection_id","created_at","id");--> statement-breakpoint
CREATE INDEX "verifications_run" ON "verifications" USING btree ("connection_run_id") WHERE "verifications"."connection_run_id" is not null;