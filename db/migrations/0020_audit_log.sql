CREATE TABLE "audit_events" (
	"seq" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_events_seq_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"account_id" uuid,
	"occurred_at" timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
	"kind" text NOT NULL,
	"action" text NOT NULL,
	"outcome" text DEFAULT 'succeeded' NOT NULL,
	"code" text,
	"actor_type" text NOT NULL,
	"actor_id" uuid,
	"actor_name" text,
	"api_key_id" uuid,
	"session_id" uuid,
	"address" text,
	"user_agent" text,
	"request_id" text,
	"resource_type" text,
	"resource_id" text,
	"resource_name" text,
	"operation" text,
	"before" jsonb,
	"after" jsonb,
	"details" jsonb,
	"count" integer DEFAULT 1 NOT NULL,
	CONSTRAINT "audit_events_kind_known" CHECK ("audit_events"."kind" in ('call', 'change', 'sign_in', 'sign_out', 'refusal', 'download', 'secret_use')),
	CONSTRAINT "audit_events_outcome_known" CHECK ("audit_events"."outcome" in ('succeeded', 'refused')),
	CONSTRAINT "audit_events_actor_type_known" CHECK ("audit_events"."actor_type" in ('user', 'schedule', 'system', 'automation', 'anonymous')),
	CONSTRAINT "audit_events_operation_known" CHECK ("audit_events"."operation" in ('create', 'update', 'delete')),
	CONSTRAINT "audit_events_count" CHECK ("audit_events"."count" >= 1),
	CONSTRAINT "audit_events_change" CHECK (("audit_events"."kind" = 'change') = ("audit_events"."operation" is not null)),
	CONSTRAINT "audit_events_refusal" CHECK (("audit_events"."outcome" = 'refused') = ("audit_events"."code" is not null))
);
--> statement-breakpoint
CREATE TABLE "audit_seals" (
	"id" bigint PRIMARY KEY NOT NULL,
	"first_seq" bigint NOT NULL,
	"last_seq" bigint NOT NULL,
	"seqs" "int8multirange" NOT NULL,
	"hash" text NOT NULL,
	"mac" text NOT NULL,
	"sealed_at" timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "audit_seals_range" CHECK ("audit_seals"."id" >= 1 and "audit_seals"."first_seq" <= "audit_seals"."last_seq")
);
--> statement-breakpoint
CREATE TABLE "audit_unsealed" (
	"seq" bigint PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE INDEX "audit_events_list" ON "audit_events" USING btree ("account_id","occurred_at","seq");--> statement-breakpoint
CREATE INDEX "audit_events_resource" ON "audit_events" USING btree ("resource_id","occurred_at") WHERE "audit_events"."resource_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "audit_seals_hash" ON "audit_seals" USING btree ("hash");