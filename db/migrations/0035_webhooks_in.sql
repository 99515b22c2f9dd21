CREATE TABLE "webhook_events" (
	"account_connector_id" uuid NOT NULL,
	"position" bigint NOT NULL,
	"event_id" text NOT NULL,
	"event_type" text,
	"received_at" timestamp(3) with time zone NOT NULL,
	"headers" text NOT NULL,
	"body" text NOT NULL,
	"bytes" integer NOT NULL,
	CONSTRAINT "webhook_events_account_connector_id_position_pk" PRIMARY KEY("account_connector_id","position"),
	CONSTRAINT "webhook_events_size" CHECK ("webhook_events"."bytes" >= 0 and "webhook_events"."position" > 0)
);
--> statement-breakpoint
CREATE TABLE "webhook_inboxes" (
	"account_connector_id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"address_version" integer DEFAULT 1 NOT NULL,
	"previous_address_until" timestamp(3) with time zone,
	"last_position" bigint DEFAULT 0 NOT NULL,
	"released_position" bigint DEFAULT 0 NOT NULL,
	"stored_events" bigint DEFAULT 0 NOT NULL,
	"stored_bytes" bigint DEFAULT 0 NOT NULL,
	"received_events" bigint DEFAULT 0 NOT NULL,
	"repeated_events" bigint DEFAULT 0 NOT NULL,
	"event_types" text[] DEFAULT '{}' NOT NULL,
	"last_received_at" timestamp(3) with time zone,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "webhook_inboxes_counts" CHECK ("webhook_inboxes"."stored_events" >= 0 and "webhook_inboxes"."stored_bytes" >= 0 and "webhook_inboxes"."received_events" >= "webhook_inboxes"."stored_events" and "webhook_inboxes"."repeated_events" >= 0),
	CONSTRAINT "webhook_inboxes_positions" CHECK ("webhook_inboxes"."last_position" >= "webhook_inboxes"."released_position" and "webhook_inboxes"."released_position" >= 0),
	CONSTRAINT "webhook_inboxes_address" CHECK ("webhook_inboxes"."address_version" >= 1)
);
--> statement-breakpoint
ALTER TABLE "secret_uses" DROP CONSTRAINT "secret_uses_purpose_known";--> statement-breakpoint
ALTER TABLE "webhook_events" ADD CONSTRAINT "webhook_events_account_connector_id_account_connectors_id_fk" FOREIGN KEY ("account_connector_id") REFERENCES "public"."account_connectors"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_inboxes" ADD CONSTRAINT "webhook_inboxes_account_connector_id_account_connectors_id_fk" FOREIGN KEY ("account_connector_id") REFERENCES "public"."account_connectors"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_inboxes" ADD CONSTRAINT "webhook_inboxes_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "webhook_events_id" ON "webhook_events" USING btree ("account_connector_id","event_id");--> statement-breakpoint
ALTER TABLE "secret_uses" ADD CONSTRAINT "secret_uses_purpose_known" CHECK ("secret_uses"."purpose" in ('test', 'discovery', 'possible_values', 'preview', 'chat_channels', 'chat_message', 'metadata_export', 'change_log', 'verification', 'webhook', 'run'));